/** Maximum number of shown members of a value; a longer value states how many are omitted. */
const MAX_MEMBERS = 200;

/** A JSON value as a tree with collapsible branches. All content is rendered as text. */
export function JsonTree({ value, depth = 0 }: { value: unknown; depth?: number }) {
  if (typeof value !== 'object' || value === null) return <Leaf value={value} />;
  const members = Object.entries(value);
  const isArray = Array.isArray(value);
  if (members.length === 0) return <span className="json-mark">{isArray ? '[]' : '{}'}</span>;
  return (
    <ul className="json">
      {members.slice(0, MAX_MEMBERS).map(([key, member]) => (
        <li key={key}>
          <Member name={key} member={member} depth={depth} />
        </li>
      ))}
      {members.length > MAX_MEMBERS && <li className="quiet">{members.length - MAX_MEMBERS} more</li>}
    </ul>
  );
}

function Member({ name, member, depth }: { name: string; member: unknown; depth: number }) {
  const isBranch = typeof member === 'object' && member !== null && Object.keys(member).length > 0;
  if (!isBranch) {
    return (
      <>
        <span className="json-key">{name}</span>
        <JsonTree value={member} />
      </>
    );
  }
  const count = Object.keys(member).length;
  return (
    <details open={depth < 3}>
      <summary>
        <span className="json-key">{name}</span>
        <span className="json-mark">{Array.isArray(member) ? `[${count}]` : `{${count}}`}</span>
      </summary>
      <JsonTree value={member} depth={depth + 1} />
    </details>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string') return <span className="json-text">{JSON.stringify(value)}</span>;
  return <span className="json-value">{String(value)}</span>;
}
