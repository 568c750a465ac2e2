import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { prefersHtml as prefersHtmlTo } from '../core/negotiation.ts';
import { RESULT_TYPES } from './requests.ts';

const prefersHtml = (accept: string | undefined) => prefersHtmlTo(accept, Object.values(RESULT_TYPES));

const browsers = {
  chrome:
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7',
  firefox: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  safari: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
};

describe('prefersHtml', () => {
  for (const [name, accept] of Object.entries(browsers)) {
    it(`is true for ${name}`, () => assert.equal(prefersHtml(accept), true));
  }

  for (const accept of [
    'text/html',
    'TEXT/HTML',
    'text/*',
    ' text/html ; q=0.1 ',
    'text/html;charset=utf-8',
    'application/json;q=0.5, text/html',
    'application/json;q=0.999, text/html;q=1.000',
    '*/*;q=0.9, text/html',
    'text/html, application/json;q=0',
    'application/graphql-response+json;q=0.8, application/json;q=0.9, text/html;q=1.0',
  ]) {
    it(`is true for ${accept}`, () => assert.equal(prefersHtml(accept), true));
  }

  for (const accept of [
    undefined,
    '',
    '*/*',
    'application/json',
    'application/graphql-response+json',
    'text/html, application/json',
    'text/html;q=0.5, application/json',
    'text/html;q=0.5, application/graphql-response+json;q=0.6',
    'text/html;q=0.5, application/*;q=0.6',
    'text/html;q=0.8, */*;q=0.8',
    'text/html;q=0',
    'text/html;q=2',
    'text/html;q=nonsense',
    'application/xhtml+xml',
    'text/*, text/html;q=0',
    'text/html-sandboxed',
  ]) {
    it(`is false for ${accept}`, () => assert.equal(prefersHtml(accept), false));
  }

  const range = fc.record({
    type: fc.constantFrom(
      'text/html',
      'text/*',
      '*/*',
      'application/json',
      'application/graphql-response+json',
      'application/*',
      'image/png',
    ),
    thousandths: fc.integer({ min: 0, max: 1000 }),
  });
  const ranges = fc.uniqueArray(range, { selector: ({ type }) => type });
  const write = (list: readonly { type: string; thousandths: number }[], comma = ',') =>
    list.map(({ type, thousandths }) => `${type};q=${(thousandths / 1000).toFixed(3)}`).join(comma);

  it('compares the weights of the most specific ranges', () => {
    fc.assert(
      fc.property(ranges, (list) => {
        const weights = new Map<string, number>(list.map(({ type, thousandths }) => [type, thousandths]));
        const weigh = (...types: string[]) =>
          types.map((type) => weights.get(type)).find((weight) => weight !== undefined) ?? 0;
        const html = weigh('text/html', 'text/*', '*/*');
        const json = weigh('application/json', 'application/*', '*/*');
        const result = weigh('application/graphql-response+json', 'application/*', '*/*');
        assert.equal(prefersHtml(write(list)), html > Math.max(json, result));
      }),
    );
  });

  it('does not depend on order, case or spaces', () => {
    fc.assert(
      fc.property(ranges, (list) => {
        const mirrored = write([...list].reverse(), ' \t, ').toUpperCase();
        assert.equal(prefersHtml(mirrored), prefersHtml(write(list)));
      }),
    );
  });

  it('never prefers a page when text/html, text/* and */* are not mentioned', () => {
    fc.assert(
      fc.property(fc.string(), (accept) => {
        fc.pre(!/text\/(html|\*)|\*\/\*/i.test(accept));
        assert.equal(prefersHtml(accept), false);
      }),
    );
  });
});
