import { after, before, describe } from 'node:test';
import { skip } from '../support.ts';
import { actionsSuite } from './actions.ts';
import { outsideSuite } from './outside.ts';
import { pagesSuite } from './pages.ts';
import { Stage } from './stage.ts';

describe('the console in Chromium', { skip, timeout: 1_800_000 }, () => {
  const stage = new Stage();
  before(() => stage.open());
  after(() => stage[Symbol.asyncDispose]());

  describe('its pages', () => pagesSuite(stage));
  describe('what a person does', () => actionsSuite(stage));
  describe('what comes from outside', () => outsideSuite(stage));
});
