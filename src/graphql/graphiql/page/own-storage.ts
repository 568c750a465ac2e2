declare const localStorage: {
  readonly length: number;
  key(index: number): string | null;
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
};

/**
 * The browser's storage with prefixed keys. GraphiQL uses the same keys everywhere, so tabs of another tool
 * on the same host and port would otherwise appear here.
 */
export function ownStorage(endpoint: string) {
  const prefix = `portico:${endpoint}:`;
  const ownKeys = () =>
    Array.from({ length: localStorage.length }, (_, index) => localStorage.key(index) ?? '').filter((key) =>
      key.startsWith(prefix),
    );

  return {
    get length() {
      return ownKeys().length;
    },
    getItem: (key: string) => localStorage.getItem(prefix + key),
    setItem: (key: string, value: string) => localStorage.setItem(prefix + key, value),
    removeItem: (key: string) => localStorage.removeItem(prefix + key),
    clear() {
      for (const key of ownKeys()) localStorage.removeItem(key);
    },
  };
}
