import type { Relation } from '../../../src/relations/relation.ts';
import type { RelationDoor, RelationReply } from './relation-door.ts';

const PROBLEMS = { accept: 'application/problem+json' };

/** A door on which users are written and read as the rows of any relation are, by the paths of the contract. */
export function usersAsRows(door: RelationDoor, { columns }: Relation): RelationDoor {
  const fields = `fields=${columns.map(({ name }) => name).join()}`;
  const shown = (reply: RelationReply, status: number, body: unknown): RelationReply => ({
    ...reply,
    status,
    headers: reply.headers,
    body,
    text: JSON.stringify(body),
  });
  const read = async (id: string, status: number): Promise<RelationReply> => {
    const reply = await door.get(`/users/${id}?${fields}`);
    const { data } = reply.body;
    return data === undefined ? shown(reply, 404, reply.body) : shown(reply, status, data);
  };
  const refused = (reply: RelationReply) => shown(reply, reply.status, { errors: [], ...reply.body });
  return {
    ...door,
    async send(method, path, body, headers) {
      const [, id = ''] = /^\/users(?:\/(\d+))?$/.exec(path) ?? [];
      if (!path.startsWith('/users')) return door.send(method, path, body, headers);
      if (method === 'POST') {
        const created = await door.send('POST', '/users', body, PROBLEMS);
        const location = created.headers.get('location');
        return location === null ? refused(created) : read(location.replace('/users/', ''), 201);
      }
      if (method === 'PATCH') {
        const type = { 'content-type': 'application/merge-patch+json' };
        const changed = await door.send('PUT', `/update/${id}`, body, { ...PROBLEMS, ...type });
        return changed.status === 200 ? read(id, 200) : refused(changed);
      }
      const removed = await door.send('DELETE', `/delete/${id}`, undefined, PROBLEMS);
      return removed.status === 200 ? shown(removed, 204, {}) : refused(removed);
    },
    async get(path, headers) {
      if (!path.startsWith('/users')) return door.get(path, headers);
      const [, id] = /^\/users\/(\d+)$/.exec(path) ?? [];
      if (id !== undefined) return read(id, 200);
      const page = await door.get(path.includes('fields=') ? path : `${path}&${fields}`, headers);
      return page.status === 200 ? shown(page, 200, page.body.data) : page;
    },
  };
}
