// The parts of the page's packages that it uses. Their own declarations need the DOM's types, which the
// rest of the program must not see.

declare module '*.css';
declare module 'monaco-graphql/esm/monaco-editor.js';

declare module 'react' {
  export function createElement(type: unknown, properties: object | null, ...children: unknown[]): object;
}

declare module 'react-dom/client' {
  export function createRoot(container: object): { render(element: object): void };
}

declare module 'graphiql' {
  export const GraphiQL: { readonly Logo: unknown };
}
