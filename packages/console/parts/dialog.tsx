import { type ReactNode, useId, useLayoutEffect, useRef } from 'react';

/** A modal dialog with a form, open while mounted; afterwards the focus returns to where it was. */
export function Dialog({
  title,
  submit,
  tone = 'primary',
  isDisabled = false,
  cancel = 'Cancel',
  onSubmit,
  onClose,
  children,
}: {
  title: string;
  /** The text of the submit button; undefined: there is nothing to submit. */
  submit: string | undefined;
  tone?: 'primary' | 'danger';
  isDisabled?: boolean;
  /** The text of the button that closes the dialog. */
  cancel?: string;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement | null>(null);
  const id = useId();
  // A layout effect: the browser returns the focus only if the dialog is closed while it is in the document.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  // A dialog without fields begins at its submit button, so that Enter submits every dialog.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a disabled button cannot have the focus.
  useLayoutEffect(() => {
    const fields = ref.current?.querySelector('input, select, textarea');
    if (!fields) ref.current?.querySelector<HTMLElement>('[type="submit"]')?.focus();
  }, [isDisabled]);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose}>
      <form
        onKeyDown={(event) => {
          // Enter alone writes a line in a text, and opens a choice.
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          if (submit !== undefined && !isDisabled) onSubmit();
        }}
        onSubmit={(event) => {
          event.preventDefault();
          if (submit !== undefined && !isDisabled) onSubmit();
        }}
      >
        <header className="dialog-head">
          <h2 id={id}>{title}</h2>
        </header>
        <div className="dialog-body">{children}</div>
        <footer className="dialog-foot">
          <button type="button" className="button" onClick={onClose}>
            {cancel}
          </button>
          {submit !== undefined && (
            <button type="submit" className={`button ${tone}`} disabled={isDisabled}>
              {submit}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  );
}
