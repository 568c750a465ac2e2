/** A command of a guide, with what it prints. */
export interface GuideCommand {
  readonly command: string;
  readonly output: string;
}

/** The commands of a guide's console blocks, in their order. */
export function guideCommands(guide: string): readonly GuideCommand[] {
  const blocks = [...guide.matchAll(/```console\n(.*?)```/gs)].map(([, block = '']) => block);
  const examples = blocks.flatMap((block) => block.split(/^\$ /m).slice(1));
  return examples.map((example) => {
    const [command = '', ...lines] = example.trimEnd().split('\n');
    return { command, output: lines.join('\n') };
  });
}
