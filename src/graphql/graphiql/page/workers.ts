/** File names of the built workers, inserted by the build. */
declare const WORKER_FILES: Readonly<Record<'editor' | 'json' | 'graphql', string>>;

declare const Worker: new (url: URL, options: { readonly name: string }) => object;

/** Where Monaco finds its workers: next to this script, so no other host is contacted. */
Object.assign(globalThis, {
  MonacoEnvironment: {
    getWorker(_id: string, label: string) {
      const file = label === 'json' || label === 'graphql' ? WORKER_FILES[label] : WORKER_FILES.editor;
      return new Worker(new URL(file, import.meta.url), { name: label });
    },
  },
});
