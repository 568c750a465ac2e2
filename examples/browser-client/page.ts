import { client, type Page, PorticoError } from 'portico/client';
import type { Note, Relations } from './portico.d.ts';

const url = new URLSearchParams(location.search).get('portico') ?? 'http://127.0.0.1:8000';
const portico = client<Relations>(url, { token: 'demo-token-of-the-page' });
const notes = new Map<number, Note>();

const [form, list, status] = ['form', 'ul', '[role=status]'].map((each) => document.querySelector(each));

function say(text: string): void {
  if (status) status.textContent = text;
}

function show(): void {
  const items = Array.from(notes.values(), ({ id, text, done }) => {
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: done });
    box.addEventListener('change', () => attempt(() => portico.notes.update(id, { done: box.checked })));
    const label = document.createElement('label');
    label.append(box, ` ${text}`);
    const item = document.createElement('li');
    item.append(label);
    return item;
  });
  list?.replaceChildren(...items);
}

/** Says why something was refused. */
async function attempt(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
    say('Following');
  } catch (error) {
    say(error instanceof PorticoError ? `${error.code}: ${error.message}` : String(error));
    show();
  }
}

/** Reads all notes once the stream is open, and then applies the changes, so that it misses none. */
async function follow(): Promise<void> {
  const changes = portico.notes.follow({
    async onOpen() {
      notes.clear();
      let page: Page<Note> | undefined = await portico.notes.list({ limit: 1000 });
      for (; page !== undefined; page = await page.next()) {
        for (const note of page.rows) notes.set(note.id, note);
      }
      show();
      say('Following');
    },
  });
  for await (const change of changes) {
    if (change.type === 'deleted') notes.delete(Number(change.key));
    else notes.set(change.row.id, change.row);
    show();
  }
}

form?.addEventListener('submit', (event) => {
  event.preventDefault();
  const text = new FormData(event.target as HTMLFormElement).get('text');
  attempt(() => portico.notes.create({ text: String(text) }));
});

for (;;) {
  try {
    await follow();
  } catch (error) {
    // The page was away for longer than the service keeps events: it reads the list again.
    if (error instanceof PorticoError && error.code === 'EVENTS_GONE') continue;
    say(String(error));
    break;
  }
}
