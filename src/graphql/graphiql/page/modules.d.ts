// The parts of the page's packages that it uses. Their own declarations require the DOM's types, which must
// not be visible to the rest of the program.

declare module '*.css';
declare module 'monaco-graphql/esm/monaco-editor.js';

declare module 'react' {
  export function createElement(type: unknown, properties: object | null, ...children: unknown[]): object;
  export function useEffect(effect: () => void, dependencies: readonly unknown[]): void;
  export function useRef<T>(initial: T): { current: T };
}

declare module 'react-dom/client' {
  export function createRoot(container: object): { render(element: object): void };
}

declare module 'graphiql' {
  export const GraphiQL: { readonly Logo: unknown };
}

declare module '@graphiql/react' {
  import type { OperationDefinitionNode } from 'graphql';

  /** The part of a Monaco editor that the page uses. */
  export interface Editor {
    getModel(): { getPositionAt(offset: number): object } | null;
    setPosition(position: object): void;
    revealPositionNearTop(position: object): void;
  }
  export interface State {
    /** Absent until the editor is rendered. */
    readonly queryEditor?: Editor;
    /** The operations of the current document; absent while it does not parse. */
    readonly operations?: readonly OperationDefinitionNode[];
  }
  export function useGraphiQL<T>(select: (state: State) => T): T;
  export function useGraphiQLActions(): { setOperationName(name: string): void };
}
