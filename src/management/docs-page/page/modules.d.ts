// Types of the part of swagger-ui that the page uses.

declare module '*.css';

declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  /** A plugin that wraps a selector of the shown document. */
  interface Plugin {
    readonly statePlugins: {
      readonly spec: {
        readonly wrapSelectors: {
          readonly allowTryItOutFor: () => (state: unknown, path: string, method: string) => boolean;
        };
      };
    };
  }
  function SwaggerUI(options: {
    readonly spec: object;
    readonly domNode: object | null;
    readonly plugins: readonly (() => Plugin)[];
    readonly deepLinking: boolean;
    readonly validatorUrl: null;
    readonly docExpansion: 'list' | 'none' | 'full';
    readonly defaultModelsExpandDepth: number;
  }): unknown;

  // biome-ignore lint/style/noDefaultExport: the package has no other.
  export { SwaggerUI as default };
}
