import type { Page } from 'playwright-core';

/**
 * What is wrong with how parts of a page lie: they are not there, wider inside than outside, outside the window, behind
 * something else, or on each other.
 */
export function layoutProblems(page: Page, selectors: readonly string[]): Promise<readonly string[]> {
  return page.evaluate<readonly string[]>(`(() => {
    const problems = [];
    if (document.documentElement.scrollWidth > innerWidth) problems.push('the page is wider than the window');
    const parts = ${JSON.stringify(selectors)}.map((name) => {
      const element = document.querySelector(name);
      if (element === null) problems.push(name + ' is not there');
      return { name, element, box: element?.getBoundingClientRect() };
    });
    for (const [index, { name, element, box }] of parts.entries()) {
      if (element === null) continue;
      if (box.width < 8 || box.height < 8) problems.push(name + ' has no size');
      if (element.scrollWidth > element.clientWidth + 1) problems.push(name + ' is cut');
      const { left, top, right, bottom } = box;
      if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight) problems.push(name + ' is outside');
      const hit = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      if (!element.contains(hit)) problems.push(name + ' is behind ' + hit?.className);
      for (const other of parts.slice(index + 1)) {
        const that = other.box;
        if (that === undefined || that.left >= right || that.right <= left) continue;
        if (that.top < bottom && that.bottom > top) problems.push(name + ' lies on ' + other.name);
      }
    }
    return problems;
  })()`);
}

/** The width of a part of a page, in CSS pixels. */
export async function widthOf(page: Page, selector: string): Promise<number> {
  return (await page.locator(selector).first().boundingBox())?.width ?? 0;
}
