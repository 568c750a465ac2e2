import { type ReactNode, useEffect, useId, useRef } from 'react';

/** A modal dialog, open while it is mounted. */
export function Dialog({
  title,
  onClose,
  children,
  foot,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  foot: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement | null>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={onClose}>
      <header className="dialog-head">
        <h2 id={id}>{title}</h2>
      </header>
      <div className="dialog-body">{children}</div>
      <footer className="dialog-foot">{foot}</footer>
    </dialog>
  );
}
