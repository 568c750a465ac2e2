import { readFileSync } from 'node:fs';

/** `RUN npm ci` is the instruction RUN with `npm ci`. */
export interface Instruction {
  readonly name: string;
  readonly text: string;
}

/** What a build stage has, from FROM on. */
export interface Stage {
  readonly image: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

/** The stages of a Dockerfile, ARG in front of the first one put in. */
export function readDockerfile(path: string): readonly Stage[] {
  const lines = readFileSync(path, 'utf8')
    .replace(/^\s*#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const instructions = lines.map((line) => {
    const [, name = '', text = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (name === '') throw new Error(`not an instruction: ${line}`);
    return { name, text };
  });
  const first = instructions.findIndex(({ name }) => name === 'FROM');
  const given = new Map(instructions.slice(0, first).map(({ text }) => text.split('=') as [string, string]));
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const { name, text } of instructions.slice(first)) {
    if (name !== 'FROM') {
      stages.at(-1)?.instructions.push({ name, text });
      continue;
    }
    const [image = '', , as] = text.split(/ (as) /i);
    const known = image.replace(/\$\{(\w+)\}/g, (_, arg: string) => given.get(arg) ?? `no ARG ${arg}`);
    stages.push({ image: known, name: as, instructions: [] });
  }
  return stages;
}

/** The texts of all instructions of that name. */
export function textsOf({ instructions }: Stage, name: string): readonly string[] {
  return instructions.filter((each) => each.name === name).map(({ text }) => text);
}

/** Mistakes by the rules of hadolint and of our own, a line each. */
export function lintDockerfile(stages: readonly Stage[]): readonly string[] {
  const problems: string[] = [];
  const expect = (holds: boolean, problem: string) => holds || problems.push(problem);
  for (const stage of stages) {
    expect(/:[\w.]*\d[\w.-]*$/.test(stage.image), `${stage.image} names no version (DL3006, DL3007)`);
    expect(textsOf(stage, 'ADD').length === 0, 'COPY says what it does, ADD may not (DL3020)');
    for (const folder of textsOf(stage, 'WORKDIR')) {
      expect(folder.startsWith('/'), `WORKDIR ${folder} is relative (DL3000)`);
    }
    for (const run of textsOf(stage, 'RUN')) {
      expect(!/\bsudo\b/.test(run), 'sudo has no use here (DL3004)');
      expect(!/\bcd /.test(run), `WORKDIR, not cd: ${run} (DL3003)`);
      expect(!/\b(?:curl|wget)\b/.test(run), `nothing comes from elsewhere: ${run}`);
      expect(!/apt-get install(?!.*--no-install-recommends)/.test(run), `${run} (DL3015)`);
      expect(!/npm (?:i|install)\b/.test(run), `npm ci keeps the versions, ${run} does not`);
    }
    for (const text of [...textsOf(stage, 'ENV'), ...textsOf(stage, 'ARG')]) {
      expect(!/(?:PASSWORD|SECRET|TOKEN)\w*=\S/i.test(text), `a secret in a layer: ${text}`);
    }
    for (const copy of textsOf(stage, 'COPY')) {
      const [, from] = /^--from=(\S+)/.exec(copy) ?? [];
      const before = stages.slice(0, stages.indexOf(stage)).map(({ name }) => name);
      expect(from === undefined || before.includes(from), `COPY from no stage: ${copy} (DL3022)`);
    }
    for (const command of ['CMD', 'ENTRYPOINT']) {
      expect(
        textsOf(stage, command).every(isList),
        `${command} runs a shell, which gets the signals (DL3025)`,
      );
    }
  }
  const last = stages.at(-1);
  if (last === undefined) return ['no stage'];
  const user = Number(textsOf(last, 'USER').at(-1)?.split(':')[0]);
  expect(user >= 1_000, 'the last USER must be a number, and not root (DL3002)');
  expect(textsOf(last, 'ENTRYPOINT').length === 1, 'one ENTRYPOINT (DL4004)');
  const health = textsOf(last, 'HEALTHCHECK');
  expect(
    health.length === 1 && isList(health[0]?.split(' CMD ')[1] ?? ''),
    'one HEALTHCHECK without a shell (DL3055)',
  );
  return problems;
}

function isList(text: string): boolean {
  try {
    return Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}
