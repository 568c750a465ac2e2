import { say } from './toasts.tsx';

/** Copies a text, also where the browser offers the clipboard to secure pages alone, and says that it is done. */
export async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement('textarea');
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  say('good', done);
}
