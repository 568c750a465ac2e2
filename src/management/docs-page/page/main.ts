import 'swagger-ui-dist/swagger-ui.css';
import './page.css';
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';

/** The part of an OpenAPI document that the page reads. */
interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly tags?: readonly string[] }>>>>;
}

declare const document: {
  readonly documentElement: { readonly classList: { toggle(name: string, isOn: boolean): void } };
  querySelector(selector: string): { readonly dataset: { readonly spec?: string } } | null;
};

declare function matchMedia(query: string): {
  readonly matches: boolean;
  addEventListener(type: 'change', listener: () => void): void;
};

// Swagger UI has a dark theme, but leaves it to the page to choose it.
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

const root = document.querySelector('#docs');
const spec = (await (await fetch(root?.dataset.spec ?? 'openapi')).json()) as ApiDocument;

/**
 * A browser lets the page send requests only to its own origin: the other doors have other origins, and do
 * not allow this one.
 */
const ownOriginOnly = () => ({
  statePlugins: {
    spec: {
      wrapSelectors: {
        allowTryItOutFor: () => (_state: unknown, path: string, method: string) =>
          spec.paths[path]?.[method]?.tags?.includes('management') === true,
      },
    },
  },
});

SwaggerUI({
  spec,
  domNode: root,
  plugins: [ownOriginOnly],
  deepLinking: true,
  validatorUrl: null,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
});
