import type { Condition, PointerCondition } from '../../config/schema/webhook-condition.ts';
import { parsePointer, valueAt } from '../../core/json-pointer.ts';

/** Whether a value holds; undefined stands for one that is missing. */
type Test = (value: unknown) => boolean;

/** Prepares a valid condition: the result says whether it holds for a parsed body, and never throws. */
export function compileCondition(condition: Condition): Test {
  if ('all' in condition) {
    const all = condition.all.map(compileCondition);
    return (body) => all.every((holds) => holds(body));
  }
  if ('any' in condition) {
    const any = condition.any.map(compileCondition);
    return (body) => any.some((holds) => holds(body));
  }
  if ('not' in condition) {
    const holds = compileCondition(condition.not);
    return (body) => !holds(body);
  }
  const pointer = parsePointer(condition.pointer) ?? [];
  const tests = testsOf(condition);
  return (body) => {
    const value = valueAt(body, pointer);
    return tests.every((holds) => holds(value));
  };
}

function testsOf(condition: PointerCondition): readonly Test[] {
  const { is, isNot, in: values, includes, exists, startsWith, above, below } = condition;
  const tests: Test[] = [];
  if (is !== undefined) tests.push((value) => value === is);
  if (isNot !== undefined) tests.push((value) => value !== isNot);
  if (values !== undefined) {
    const set = new Set<unknown>(values);
    tests.push((value) => set.has(value));
  }
  if (includes !== undefined) tests.push((value) => Array.isArray(value) && value.includes(includes));
  if (exists !== undefined) tests.push((value) => (value !== undefined) === exists);
  if (startsWith !== undefined) {
    tests.push((value) => typeof value === 'string' && value.startsWith(startsWith));
  }
  if (above !== undefined) tests.push((value) => typeof value === 'number' && value > above);
  if (below !== undefined) tests.push((value) => typeof value === 'number' && value < below);
  return tests;
}
