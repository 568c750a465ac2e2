// The parts of React that the console uses; React's types are a separate package.

declare module '*.css';

declare module 'react' {
  export interface ReactElement {
    readonly type: unknown;
    readonly props: unknown;
    readonly key: string | null;
  }
  export type ReactNode = ReactElement | string | number | boolean | null | undefined | readonly ReactNode[];
  export type Context<T> = (props: { readonly value: T; readonly children?: ReactNode }) => ReactElement;
  export type Update<T> = (next: T | ((before: T) => T)) => void;

  export function useState<T>(initial: T | (() => T)): [T, Update<T>];
  export function useState<T>(): [T | undefined, Update<T | undefined>];
  export function useEffect(
    // biome-ignore lint/suspicious/noConfusingVoidType: an effect returns nothing, or its cleanup.
    effect: () => void | (() => void),
    dependencies?: readonly unknown[],
  ): void;
  export function useLayoutEffect(
    // biome-ignore lint/suspicious/noConfusingVoidType: an effect returns nothing, or its cleanup.
    effect: () => void | (() => void),
    dependencies?: readonly unknown[],
  ): void;
  export function useRef<T>(initial: T): { current: T };
  export function useMemo<T>(make: () => T, dependencies: readonly unknown[]): T;
  export function useCallback<T>(callback: T, dependencies: readonly unknown[]): T;
  export function useId(): string;
  export const Fragment: (props: { readonly children?: ReactNode }) => ReactElement;
  export function createContext<T>(initial: T): Context<T>;
  export function useContext<T>(context: Context<T>): T;
}

declare module 'react-dom/client' {
  import type { ReactNode } from 'react';
  export function createRoot(container: Element): { render(element: ReactNode): void };
}

declare module 'react/jsx-runtime' {
  import type { ReactElement, ReactNode } from 'react';

  interface Happening {
    readonly currentTarget: {
      readonly value: string;
      readonly checked: boolean;
      readonly scrollTop: number;
      readonly scrollHeight: number;
      readonly clientHeight: number;
    };
    readonly target: { closest(selector: string): unknown };
    readonly key: string;
    readonly ctrlKey: boolean;
    readonly metaKey: boolean;
    preventDefault(): void;
  }
  interface Attributes {
    readonly children?: ReactNode;
    readonly onClick?: (event: Happening) => void;
    readonly onChange?: (event: Happening) => void;
    readonly onSubmit?: (event: Happening) => void;
    readonly onKeyDown?: (event: Happening) => void;
    readonly onScroll?: (event: Happening) => void;
    readonly onClose?: () => void;
    readonly ref?: unknown;
    readonly [name: string]: unknown;
  }
  export namespace JSX {
    type Element = ReactElement;
    interface ElementChildrenAttribute {
      readonly children: unknown;
    }
    interface IntrinsicAttributes {
      readonly key?: string | number;
    }
    interface IntrinsicElements {
      readonly [tag: string]: Attributes;
    }
  }
}
