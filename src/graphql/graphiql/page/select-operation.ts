import { useGraphiQL, useGraphiQLActions } from '@graphiql/react';
import { useEffect, useRef } from 'react';

/**
 * Selects the operation that a link names, once, when the editor is ready: the tab gets its name, and
 * Ctrl+Enter runs it because the cursor is in it.
 */
export function SelectOperation({ name }: { readonly name: string }): null {
  const { queryEditor, operations } = useGraphiQL(({ queryEditor, operations }) => ({
    queryEditor,
    operations,
  }));
  const { setOperationName } = useGraphiQLActions();
  const done = useRef(false);
  useEffect(() => {
    if (done.current || queryEditor === undefined) return;
    done.current = true;
    const start = operations?.find((operation) => operation.name?.value === name)?.loc?.start;
    const position = start === undefined ? undefined : queryEditor.getModel()?.getPositionAt(start);
    if (position === undefined) return;
    setOperationName(name);
    queryEditor.setPosition(position);
    queryEditor.revealPositionNearTop(position);
  }, [queryEditor, operations, name, setOperationName]);
  return null;
}
