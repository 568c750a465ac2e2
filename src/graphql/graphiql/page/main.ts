import './workers.ts';
// The editor's styles come first so that GraphiQL's can override them.
import 'monaco-graphql/esm/monaco-editor.js';
import '@graphiql/react/font/roboto.css';
import '@graphiql/react/font/fira-code.css';
import '@graphiql/react/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import '@graphiql/plugin-history/style.css';
import 'graphiql/graphiql.css';
import './page.css';
import './narrow.css';
import { GraphiQL } from 'graphiql';
import { createElement } from 'react';
import { createRoot } from 'react-dom/client';
import { runOperation } from './fetcher.ts';
import { readLink } from './link.ts';
import { logo } from './logo.ts';
import { ownStorage } from './own-storage.ts';
import { SelectOperation } from './select-operation.ts';
import { readExamples, startWith } from './start.ts';

declare const document: {
  getElementById(id: string): { readonly dataset: { readonly examples?: string } } | null;
};
declare const location: { readonly pathname: string; readonly search: string };

const container = document.getElementById('graphiql');
if (container === null) throw new Error('The page has no #graphiql element.');

// The page and the endpoint share a URL (CONTRACT.md#graphql-operations).
const endpoint = location.pathname;
const link = readLink(location.search);

createRoot(container).render(
  createElement(
    GraphiQL,
    {
      fetcher: runOperation(endpoint),
      ...startWith(link, readExamples(container.dataset.examples)),
      defaultEditorToolsVisibility: true,
      schemaDescription: true,
      storage: ownStorage(endpoint),
    },
    createElement(GraphiQL.Logo, null, logo()),
    link?.operationName !== undefined && createElement(SelectOperation, { name: link.operationName }),
  ),
);
