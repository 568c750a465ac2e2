import * as v from 'valibot';
import { wholeField } from './fields.ts';

const ONE = 'must be a secret, { env: NAME } or { file: PATH }';
const MANY = `${ONE}, or an array of at least one of these`;

const target = v.pipe(v.string(), v.nonEmpty());

/** A secret, or a reference to the variable or file that holds it. */
export const secretSchema = wholeField(
  v.union([v.string(), v.strictObject({ env: target }), v.strictObject({ file: target })]),
  ONE,
);

const listSchema = v.pipe(v.array(secretSchema, MANY), v.minLength(1, MANY));

type Secret = v.InferOutput<typeof secretSchema>;

/** One secret or several, so that one can be rotated. */
export const secretsSchema = v.lazy(
  (value): v.GenericSchema<Secret | Secret[]> =>
    value === undefined || Array.isArray(value) ? listSchema : secretSchema,
);
