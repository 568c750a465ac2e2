import { createElement } from 'react';

/** The name in the upper right corner, with the arch of a portico. */
export function logo() {
  return createElement(
    'span',
    { className: 'portico-logo' },
    createElement(
      'svg',
      { viewBox: '0 0 32 32', 'aria-hidden': true },
      createElement('path', { d: 'M6 27V16a10 10 0 0 1 20 0v11M12 27V17a4 4 0 0 1 8 0v10' }),
    ),
    'Portico ',
    createElement('em', null, 'GraphQL'),
  );
}
