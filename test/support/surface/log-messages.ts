import ts from 'typescript5';

const LEVELS: ReadonlySet<string> = new Set(['trace', 'debug', 'info', 'warn', 'error', 'fatal']);
/** Alternatives of one message beyond which its variable part is `{}`. */
const MAX_ALTERNATIVES = 8;

/**
 * Every message that the sources log, one line each: its level, the message with `{}` for what varies, and the names of
 * the fields beside it. A message is found by the call, wherever that stands: the method of a level of a logger, or any
 * function that gets a logger and the text.
 */
export function describeLogMessages(program: ts.Program, isSource: (file: string) => boolean): string {
  const reader = new Reader(program.getTypeChecker());
  for (const source of program.getSourceFiles()) {
    if (!source.isDeclarationFile && isSource(source.fileName)) reader.visit(source);
  }
  return [...reader.lines].sort().join('\n');
}

class Reader {
  readonly lines = new Set<string>();
  readonly #checker: ts.TypeChecker;

  constructor(checker: ts.TypeChecker) {
    this.#checker = checker;
  }

  visit(node: ts.Node): void {
    if (ts.isCallExpression(node)) this.#call(node);
    ts.forEachChild(node, (child) => this.visit(child));
  }

  #call(call: ts.CallExpression): void {
    const { expression: callee, arguments: given } = call;
    if (ts.isPropertyAccessExpression(callee) && LEVELS.has(callee.name.text)) {
      if (this.#isLogger(callee.expression)) this.#entry(callee.name.text, given);
      return;
    }
    const texts = given.filter((each) => ts.isStringLiteralLike(each) || ts.isTemplateExpression(each));
    if (texts.length === 0 || !given.some((each) => !isLiteral(each) && this.#isLogger(each))) return;
    const level = this.#levelOf(call);
    if (level === undefined) return;
    for (const text of texts.flatMap((each) => this.#textsOf(each))) {
      if (!LEVELS.has(text)) this.#add(level, text, undefined);
    }
  }

  /** `log.warn(message)` or `log.warn(fields, message)`. */
  #entry(level: string, given: readonly ts.Expression[]): void {
    const [first, second] = given;
    if (first === undefined) return;
    const isMessage = this.#isText(this.#checker.getTypeAtLocation(first));
    const message = isMessage ? first : second;
    const fields = isMessage ? undefined : this.#fieldsOf(first);
    for (const text of message === undefined ? [''] : this.#textsOf(message)) this.#add(level, text, fields);
  }

  #add(level: string, message: string, fields: string | undefined): void {
    this.lines.add(`${message} (${level})${fields === undefined ? '' : ` ${fields}`}`);
  }

  /** Whether an expression has the methods of a logger, or the one that it is picked for. */
  #isLogger(node: ts.Expression): boolean {
    const type = this.#checker.getNonNullableType(this.#checker.getTypeAtLocation(node));
    return type.getProperties().some((method) => {
      if (!LEVELS.has(method.name)) return false;
      const signatures = this.#checker.getTypeOfSymbolAtLocation(method, node).getCallSignatures();
      // The method takes a message alone, or behind fields.
      return signatures.some(({ parameters }) =>
        parameters
          .slice(0, 2)
          .some((each) => this.#isText(this.#checker.getTypeOfSymbolAtLocation(each, node))),
      );
    });
  }

  #isText(type: ts.Type): boolean {
    return ((this.#checker.getBaseConstraintOfType(type) ?? type).flags & ts.TypeFlags.StringLike) !== 0;
  }

  /** The level among the arguments, or the default of the parameter for it. */
  #levelOf(call: ts.CallExpression): string | undefined {
    const given = call.arguments.find((each) => ts.isStringLiteralLike(each) && LEVELS.has(each.text));
    if (given !== undefined) return (given as ts.StringLiteralLike).text;
    const declared = this.#checker.getResolvedSignature(call)?.declaration?.parameters ?? [];
    for (const { initializer } of declared.slice(
      call.arguments.length,
    ) as readonly ts.ParameterDeclaration[]) {
      const value = initializer && unwrapped(initializer);
      if (value !== undefined && ts.isStringLiteralLike(value) && LEVELS.has(value.text)) return value.text;
    }
    return undefined;
  }

  #fieldsOf(node: ts.Expression): string {
    const type = this.#checker.getTypeAtLocation(node);
    const properties = this.#checker
      .getPropertiesOfType(type)
      .map(({ name, flags }) => `${name}${flags & ts.SymbolFlags.Optional ? '?' : ''}`);
    const isOpen = type.flags & ts.TypeFlags.Any || this.#checker.getIndexInfosOfType(type).length > 0;
    return `{${[...properties.sort(), ...(isOpen ? ['...'] : [])].join(', ')}}`;
  }

  /** What a message can be. */
  #textsOf(given: ts.Expression): readonly string[] {
    const node = unwrapped(given);
    if (ts.isStringLiteralLike(node)) return [node.text];
    if (ts.isConditionalExpression(node))
      return [...this.#textsOf(node.whenTrue), ...this.#textsOf(node.whenFalse)];
    if (ts.isTemplateExpression(node)) {
      let texts: readonly string[] = [node.head.text];
      for (const { expression, literal } of node.templateSpans) {
        texts = joined(joined(texts, this.#textsOf(expression)), [literal.text]);
      }
      return texts;
    }
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
      return joined(this.#textsOf(node.left), this.#textsOf(node.right));
    }
    const type = this.#checker.getTypeAtLocation(node);
    const values = (type.isUnion() ? type.types : [type]).map((each) =>
      each.isStringLiteral() ? each.value : '{}',
    );
    return values.length > MAX_ALTERNATIVES ? ['{}'] : [...new Set(values)].sort();
  }
}

function joined(heads: readonly string[], tails: readonly string[]): readonly string[] {
  const [one] = tails;
  const kept = heads.length * tails.length > MAX_ALTERNATIVES && one !== undefined ? ['{}'] : tails;
  return heads.flatMap((head) => kept.map((tail) => head + tail));
}

/** Without parentheses and assertions about its type. */
function unwrapped(node: ts.Expression): ts.Expression {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isSatisfiesExpression(node)) {
    return unwrapped(node.expression);
  }
  return node;
}

/** Whether an expression is a literal, which cannot be a logger. */
function isLiteral(node: ts.Expression): boolean {
  return (
    ts.isLiteralExpression(node) ||
    ts.isTemplateExpression(node) ||
    ts.isFunctionLike(node) ||
    ts.isObjectLiteralExpression(node) ||
    ts.isArrayLiteralExpression(node)
  );
}
