import { useEffect } from 'react';

/**
 * Keeps the focus in the page: if the element that has it is removed, as a row or a button that acted, the nearest
 * element around it that still exists gets it.
 */
export function useKeptFocus(page: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    let around: Element[] = [];
    const note = ({ target }: FocusEvent) => {
      around = [];
      for (let each = target as Element | null; each !== null; each = each.parentElement) around.push(each);
    };
    const keep = () => {
      const [lost] = around;
      if (lost === undefined || document.activeElement !== document.body) return;
      // Elements that move within the page lose the focus too.
      const next = around.find(
        (each) => each.isConnected && (each === lost || each.hasAttribute('tabindex')),
      );
      if (next instanceof HTMLElement) next.focus({ preventScroll: true });
    };
    const forget = ({ target }: MouseEvent) => {
      if (
        target instanceof Element &&
        target.closest('a, button, input, select, textarea, [tabindex]') === null
      )
        around = [];
    };
    const watcher = new MutationObserver(keep);
    if (page.current !== null) watcher.observe(page.current, { childList: true, subtree: true });
    document.addEventListener('focusin', note);
    document.addEventListener('mousedown', forget);
    return () => {
      watcher.disconnect();
      document.removeEventListener('focusin', note);
      document.removeEventListener('mousedown', forget);
    };
  }, [page]);
}
