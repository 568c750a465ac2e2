import { useEffect, useState } from 'react';
import type { Tone } from './parts.tsx';

interface Toast {
  readonly id: number;
  readonly tone: Tone;
  readonly text: string;
  /** Undoes the action while the toast is visible. */
  readonly undo?: () => void;
}

const DURATION = 6_000;

let shown: readonly Toast[] = [];
let next = 1;
let watcher: ((toasts: readonly Toast[]) => void) | undefined;

function change(toasts: readonly Toast[]): void {
  shown = toasts;
  watcher?.(toasts);
}

/** Shows a toast for a few seconds. */
export function say(tone: Tone, text: string, undo?: () => void): void {
  const toast: Toast = { id: next++, tone, text, ...(undo && { undo }) };
  change([...shown.slice(-3), toast]);
  setTimeout(() => close(toast.id), DURATION);
}

function close(id: number): void {
  change(shown.filter((toast) => toast.id !== id));
}

/** The place of the toasts. */
export function Toasts() {
  const [toasts, setToasts] = useState(shown);
  useEffect(() => {
    watcher = setToasts;
    return () => {
      watcher = undefined;
    };
  }, []);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, tone, text, undo }) => (
        <div key={id} className={`toast ${tone}`}>
          <span>{text}</span>
          {undo !== undefined && (
            <button
              type="button"
              onClick={() => {
                undo();
                close(id);
              }}
            >
              Undo
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
