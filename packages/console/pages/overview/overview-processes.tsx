import { useAbout } from '../../data/about.ts';
import { formatSpan } from '../../data/format.ts';
import { Card, Status, Table } from '../../parts/parts.tsx';

/** The processes that use the database, if there are several. */
export function Processes() {
  const about = useAbout();
  if (about === undefined || about.processes.length < 2) return null;
  const { host, pid } = about.process;
  // The database stores the name in this form.
  const own = `${host.replace(/[^\w.-]/g, '').slice(0, 40)}/${pid}`;
  return (
    <Card
      title="Processes on this database"
      note="plots, log and levels are of one process"
      className="processes"
    >
      <Table label="Processes">
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">Connected for</th>
            <th scope="col">Shown here</th>
          </tr>
        </thead>
        <tbody>
          {about.processes.map(({ name, since }) => (
            <tr key={`${name} ${since}`}>
              <th scope="row" className="mono break">
                {name}
              </th>
              <td className="nowrap">{formatSpan(Date.now() - Date.parse(since))}</td>
              <td>
                {name === own ? <Status tone="info">this one</Status> : <span className="quiet">no</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </Table>
    </Card>
  );
}
