import { boolean, defineConfig, text } from 'portico';

export default defineConfig({
  relations: {
    notes: { columns: { text: text({ max: 200 }), done: boolean({ default: false }) } },
  },
  rest: {
    // Pages of this origin may use the door, also its event streams.
    cors: { origins: ['http://localhost:9000'] },
  },
  api: {
    required: 'all',
    tokens: { page: { secret: 'demo-token-of-the-page', scopes: ['notes:read', 'notes:write'] } },
  },
});
