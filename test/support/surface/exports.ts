import ts from 'typescript5';

/** An entry of the package: the name that programs import, and its declarations. */
export interface Entry {
  readonly name: string;
  readonly file: string;
}

/** Longest object that stands on one line. */
const INLINE = 60;
/** Longest union of one line each that stands on one line. */
const LONG = 120;
/** Nesting beyond which the compiler's own words stand for a type; only a generic type that grows at each step gets there. */
const MAX_DEPTH = 40;
const NO_TRUNCATION =
  ts.TypeFormatFlags.NoTruncation | ts.TypeFormatFlags.UseSingleQuotesForStringLiteralType;

/**
 * Describes everything that the entries export, as text. Exported types and those of other packages appear by name. All
 * other types are expanded at the first place that uses them, in alphabetical order, and later places refer to it with
 * `see <place>`. So the text does not depend on the names and files of internal types, the order of declarations or
 * comments.
 */
export function describeExports(program: ts.Program, entries: readonly Entry[]): string {
  const checker = program.getTypeChecker();
  const names = new Map<ts.Symbol, string>();
  const owners = new Map<string, ts.Symbol>();
  const modules = entries.map(({ name, file }) => {
    const source = program.getSourceFile(file);
    const module = source && checker.getSymbolAtLocation(source);
    if (module === undefined) throw new Error(`the entry ${name} has no declarations in ${file}`);
    const exported = checker
      .getExportsOfModule(module)
      .map((each) => ({
        name: each.name,
        symbol: each.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(each) : each,
      }))
      .sort(byName);
    for (const each of exported) {
      if (names.has(each.symbol)) continue;
      const taken = owners.has(each.name);
      names.set(each.symbol, taken ? `${name}:${each.name}` : each.name);
      owners.set(each.name, each.symbol);
    }
    return { name, exported };
  });
  const printer = new Printer(program, names);
  const written = new Map<ts.Symbol, string>();
  return modules
    .map(({ name, exported }) => {
      const parts = exported.map((each) => {
        const first = written.get(each.symbol);
        if (first !== undefined) return `${each.name}: see ${first}`;
        written.set(each.symbol, name);
        return printer.exported(each.name, each.symbol);
      });
      return [`# ${name}`, ...parts].join('\n\n');
    })
    .join('\n\n');
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return Number(a.name > b.name) - Number(a.name < b.name);
}

/** Where a shape stands that was written out, and its text once that is known. */
interface Written {
  readonly place: string;
  text: string | undefined;
}

class Printer {
  readonly #program: ts.Program;
  readonly #checker: ts.TypeChecker;
  /** Of the symbols that entries export. */
  readonly #names: ReadonlyMap<ts.Symbol, string>;
  readonly #written = new Map<ts.Type, Written>();
  #depth = 0;

  constructor(program: ts.Program, names: ReadonlyMap<ts.Symbol, string>) {
    this.#program = program;
    this.#checker = program.getTypeChecker();
    this.#names = names;
  }

  /** The definitions that one exported name has. */
  exported(name: string, symbol: ts.Symbol): string {
    const { flags } = symbol;
    const parts: string[] = [];
    if (flags & ts.SymbolFlags.Class) parts.push(this.#class(name, symbol));
    else if (flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) {
      const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
      const parameters = this.#typeParameters(this.#parametersOf(symbol), name);
      parts.push(`type ${name}${parameters} = ${this.#structure(type, name)}`);
    }
    if (flags & ts.SymbolFlags.Function) {
      const type = this.#checker.getTypeOfSymbol(symbol);
      for (const signature of type.getCallSignatures()) {
        parts.push(`function ${name}${this.#signature(signature, name, ': ')}`);
      }
    } else if (flags & ts.SymbolFlags.Variable) {
      parts.push(`const ${name}: ${this.#type(this.#checker.getTypeOfSymbol(symbol), name)}`);
    }
    if (parts.length === 0)
      throw new Error(`${name} is exported as something that this test cannot describe`);
    return parts.join('\n');
  }

  #class(name: string, symbol: ts.Symbol): string {
    const instance = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const side = this.#checker.getTypeOfSymbol(symbol);
    const isAbstract = hasModifier(symbol, ts.ModifierFlags.Abstract);
    const statics = this.#properties(side)
      .filter((each) => each.name !== 'prototype' && this.#homeOf(each) === undefined)
      .map((member) => `static ${this.#member(member, `typeof ${name}`)}`);
    const constructors = side
      .getConstructSignatures()
      .map((each) => `constructor${this.#signature(each, `new ${name}`, undefined)}`);
    const members = [...statics.sort(), ...constructors, ...this.#members(instance, name)];
    const parameters = this.#typeParameters(this.#parametersOf(symbol), name);
    const heads = `${isAbstract ? 'abstract ' : ''}class ${name}${parameters}${this.#foreignBases(instance)}`;
    return `${heads} ${block(members, true)}`;
  }

  /** The type by its name, if it has one that programs know; else its shape. */
  #type(type: ts.Type, place: string): string {
    const alias = type.aliasSymbol;
    if (alias !== undefined) {
      const name = this.#nameOf(alias);
      // What the library computes of our types, such as Omit, is shown by its result.
      const isComputed =
        this.#homeOf(alias) === '' && !type.aliasTypeArguments?.some((each) => this.#isPackages(each));
      if (name !== undefined && !isComputed) {
        return `${name}${this.#typeArguments(type.aliasTypeArguments, undefined, place)}`;
      }
    }
    const symbol = type.getSymbol();
    if (symbol !== undefined && isNamed(symbol)) {
      const name = this.#nameOf(symbol);
      if (name !== undefined) {
        const isConstructor = symbol.flags & ts.SymbolFlags.Class && !type.isClass() && !isReference(type);
        if (isConstructor) return `typeof ${name}`;
        const plain = this.#arrayOf(type, place);
        if (plain !== undefined) return plain;
        if (!isReference(type)) return name;
        const { target } = type;
        const given = this.#checker.getTypeArguments(type).slice(0, target.typeParameters?.length ?? 0);
        return `${name}${this.#typeArguments(given, target.typeParameters, place)}`;
      }
    }
    return this.#shape(type, place);
  }

  /** A shape that was written out already is `see` and its place, unless it is one line. */
  #shape(type: ts.Type, place: string): string {
    const known = this.#written.get(type);
    if (known !== undefined) return known.text ?? `see ${known.place}`;
    if (this.#depth > MAX_DEPTH) return this.#checker.typeToString(type, undefined, NO_TRUNCATION);
    const written: Written = { place, text: undefined };
    this.#written.set(type, written);
    this.#depth++;
    const text = this.#structure(type, place);
    this.#depth--;
    if (text.includes('\n')) return text;
    written.text = text;
    return text;
  }

  #structure(type: ts.Type, place: string): string {
    const { flags } = type;
    if (type.isUnion()) return this.#union(type.types, place);
    if (type.isIntersection()) return this.#intersection(type, place);
    if (flags & ts.TypeFlags.Index) return `keyof ${this.#type((type as ts.IndexType).type, place)}`;
    if (flags & ts.TypeFlags.IndexedAccess) {
      const { objectType, indexType } = type as ts.IndexedAccessType;
      return `${this.#type(objectType, `${place}{}`)}[${this.#type(indexType, `${place}[]`)}]`;
    }
    if (flags & ts.TypeFlags.Object) {
      return this.#arrayOf(type, place) ?? this.#tuple(type, place) ?? this.#object(type, place);
    }
    if (isError(type)) throw new Error(`${place} has a type that is not found`);
    return this.#checker.typeToString(type, undefined, NO_TRUNCATION);
  }

  #union(types: readonly ts.Type[], place: string, without: (type: ts.Type) => boolean = isMissing): string {
    // The compiler's order of members follows that of the files.
    const kept = types
      .filter((each) => !without(each))
      .map((type) => ({ name: this.#outline(type), type }))
      .sort(byName);
    const shapes = kept.filter(({ name }) => name.startsWith('{')).length;
    const texts = kept.map(({ name, type }) => {
      const text = this.#type(type, shapes > 1 && name.startsWith('{') ? place + name : place);
      return text.includes('=> ') && !/^[{[]/.test(text) ? `(${text})` : text;
    });
    const isBoolean = texts.includes('true') && texts.includes('false');
    const named = isBoolean
      ? [...texts.filter((text) => text !== 'true' && text !== 'false'), 'boolean']
      : texts;
    const sorted = [...new Set(named)].sort();
    const inline = sorted.join(' | ');
    const isLong = inline.length > LONG && !inline.includes('\n');
    return isLong ? sorted.map((each) => `\n  | ${each}`).join('') : inline;
  }

  /** What tells the members of a union apart before they are written out: names that programs know, or of properties. */
  #outline(type: ts.Type): string {
    const name = this.#nameOfType(type);
    if (name !== undefined) return name;
    const isObject = (type.flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) !== 0;
    if (!isObject || type.getCallSignatures().length > 0) {
      return this.#checker.typeToString(type, undefined, NO_TRUNCATION);
    }
    const properties = this.#properties(type).map(memberName);
    return `{${properties
      .filter((each) => /^\w+$/.test(each))
      .slice(0, 3)
      .join(',')}}`;
  }

  #intersection(type: ts.IntersectionType, place: string): string {
    const isObject = type.types.every(
      (each) => each.flags & ts.TypeFlags.Object && this.#nameOfType(each) === undefined,
    );
    if (isObject) return this.#object(type, place);
    const texts = type.types.map((each) => this.#type(each, place));
    return texts.sort().join(' & ');
  }

  #arrayOf(type: ts.Type, place: string): string | undefined {
    if (!this.#checker.isArrayType(type)) return undefined;
    const [item] = this.#checker.getTypeArguments(type as ts.TypeReference);
    if (item === undefined) return undefined;
    const text = this.#type(item, `${place}[]`);
    const inner = /[|&]| => |^see /.test(text) && !/^[{[]/.test(text) ? `(${text})` : text;
    return `${type.getSymbol()?.name === 'ReadonlyArray' ? 'readonly ' : ''}${inner}[]`;
  }

  #tuple(type: ts.Type, place: string): string | undefined {
    if (!this.#checker.isTupleType(type)) return undefined;
    const { target } = type as ts.TupleTypeReference;
    const items = this.#checker.getTypeArguments(type as ts.TypeReference).map((item, at) => {
      const kind = target.elementFlags[at] ?? ts.ElementFlags.Required;
      const label = target.labeledElementDeclarations?.[at]?.name.getText();
      const text = this.#type(item, `${place}[${at}]`);
      const named =
        label === undefined ? text : `${label}${kind & ts.ElementFlags.Optional ? '?' : ''}: ${text}`;
      if (kind & ts.ElementFlags.Rest) return `...${named}[]`;
      if (kind & ts.ElementFlags.Variadic) return `...${named}`;
      return label === undefined && kind & ts.ElementFlags.Optional ? `${named}?` : named;
    });
    return `${target.readonly ? 'readonly ' : ''}[${items.join(', ')}]`;
  }

  #object(type: ts.Type, place: string): string {
    const [call, ...others] = type.getCallSignatures();
    const isFunction =
      call !== undefined &&
      others.length === 0 &&
      type.getConstructSignatures().length === 0 &&
      this.#properties(type).length === 0;
    if (isFunction) return this.#signature(call, place, ' => ');
    const members = this.#members(type, place);
    const bases = this.#foreignBases(type).trim();
    return bases === '' ? block(members) : `${bases} ${block(members)}`;
  }

  /** Signatures first, then the members by name. */
  #members(type: ts.Type, place: string): readonly string[] {
    const indexes = this.#checker.getIndexInfosOfType(type).map(({ keyType, type: value, isReadonly }) => {
      const text = this.#type(value, `${place}[]`);
      return `${isReadonly ? 'readonly ' : ''}[${this.#type(keyType, place)}]: ${text}`;
    });
    return [
      ...type.getCallSignatures().map((each) => this.#signature(each, place, ': ')),
      ...type.getConstructSignatures().map((each) => `new ${this.#signature(each, `new ${place}`, ': ')}`),
      ...indexes.sort(),
      ...this.#properties(type).map((each) => this.#member(each, place)),
    ];
  }

  #properties(type: ts.Type): readonly ts.Symbol[] {
    const bases = this.#foreignBases(type) !== '';
    return this.#checker
      .getPropertiesOfType(type)
      .filter((each) => !isHidden(each))
      .filter((each) => !bases || this.#homeOf(each) === undefined)
      .map((symbol) => ({ name: memberName(symbol), symbol }))
      .sort(byName)
      .map(({ symbol }) => symbol);
  }

  #member(symbol: ts.Symbol, owner: string): string {
    const name = memberName(symbol);
    const place = `${owner}.${name}`;
    const type = this.#checker.getTypeOfSymbol(symbol);
    const isOptional = (symbol.flags & ts.SymbolFlags.Optional) !== 0;
    if (symbol.flags & ts.SymbolFlags.Method) {
      const method = isOptional ? this.#checker.getNonNullableType(type) : type;
      const signatures = method.getCallSignatures().map((each) => this.#signature(each, place, ': '));
      return signatures.map((signature) => `${name}${isOptional ? '?' : ''}${signature}`).join('\n');
    }
    // Without what only says that it may be absent.
    const isUnion = type.isUnion() && type.types.some(isMissing);
    const text = isUnion ? this.#union(type.types, place) : this.#type(type, place);
    return `${isReadonly(symbol) ? 'readonly ' : ''}${name}${isOptional ? '?' : ''}: ${text}`;
  }

  #parametersOf(symbol: ts.Symbol): readonly ts.TypeParameter[] {
    const declared = symbol.declarations?.flatMap((each) =>
      ts.isTypeAliasDeclaration(each) || ts.isInterfaceDeclaration(each) || ts.isClassDeclaration(each)
        ? [...(each.typeParameters ?? [])]
        : [],
    );
    const types = declared?.map((each) => this.#checker.getTypeAtLocation(each) as ts.TypeParameter);
    // Declarations that are merged share them.
    return [...new Set(types)];
  }

  /** `arrow` stands before what is returned; undefined for a constructor. */
  #signature(signature: ts.Signature, place: string, arrow: string | undefined): string {
    const parameters = signature.getParameters().map((parameter, at) => {
      const declaration = parameter.valueDeclaration as ts.ParameterDeclaration | undefined;
      const isRest = declaration?.dotDotDotToken !== undefined;
      const isOptional =
        !isRest && declaration !== undefined && this.#checker.isOptionalParameter(declaration);
      const name = /^__\d+$/.test(parameter.name) ? `_${at}` : parameter.name;
      const type = this.#checker.getTypeOfSymbol(parameter);
      const inner = `${place}(${name})`;
      const text =
        isOptional && type.isUnion()
          ? this.#union(type.types, inner, (each) => (each.flags & ts.TypeFlags.Undefined) !== 0)
          : this.#type(type, inner);
      return `${isRest ? '...' : ''}${name}${isOptional ? '?' : ''}: ${text}`;
    });
    const generic = this.#typeParameters(signature.getTypeParameters(), place);
    const head = `${generic}(${parameters.join(', ')})`;
    return arrow === undefined ? head : `${head}${arrow}${this.#returned(signature, `${place}()`)}`;
  }

  #returned(signature: ts.Signature, place: string): string {
    const predicate = this.#checker.getTypePredicateOfSignature(signature);
    if (predicate === undefined) return this.#type(signature.getReturnType(), place);
    const asserts =
      predicate.kind === ts.TypePredicateKind.AssertsIdentifier ||
      predicate.kind === ts.TypePredicateKind.AssertsThis;
    const subject = `${asserts ? 'asserts ' : ''}${predicate.parameterName ?? 'this'}`;
    return predicate.type === undefined ? subject : `${subject} is ${this.#type(predicate.type, place)}`;
  }

  #typeParameters(parameters: readonly ts.TypeParameter[] | undefined, place: string): string {
    if (parameters === undefined || parameters.length === 0) return '';
    const texts = parameters.map((parameter) => {
      const constraint = parameter.getConstraint();
      const standard = parameter.getDefault();
      const isConst = hasModifier(parameter.symbol, ts.ModifierFlags.Const);
      const name = `${isConst ? 'const ' : ''}${parameter.symbol.name}`;
      const rule = constraint === undefined ? '' : ` extends ${this.#type(constraint, `${place}<>`)}`;
      return `${name}${rule}${standard === undefined ? '' : ` = ${this.#type(standard, `${place}<>`)}`}`;
    });
    return `<${texts.join(', ')}>`;
  }

  /** Without those at the end that have a default and nothing of ours: other packages compute them. */
  #typeArguments(
    given: readonly ts.Type[] | undefined,
    parameters: readonly ts.TypeParameter[] | undefined,
    place: string,
  ): string {
    const left = [...(given ?? [])];
    const isStandard = (at: number, type: ts.Type | undefined) =>
      parameters?.[at]?.getDefault() !== undefined && type !== undefined && !this.#isOwn(type);
    while (isStandard(left.length - 1, left.at(-1))) left.pop();
    if (left.length === 0) return '';
    return `<${left.map((each, at) => this.#type(each, `${place}<${at}>`)).join(', ')}>`;
  }

  /** ` extends` and the types of other packages that a class or interface is built on. */
  #foreignBases(type: ts.Type): string {
    const symbol = type.getSymbol();
    if (symbol === undefined || !isNamed(symbol)) return '';
    const declared = isReference(type) ? type.target : type;
    if (!declared.isClassOrInterface()) return '';
    const found = new Set<string>();
    const visit = (each: ts.InterfaceType) => {
      for (const base of this.#checker.getBaseTypes(each)) {
        const own = base.getSymbol();
        if (own !== undefined && isNamed(own) && this.#homeOf(own) !== undefined)
          found.add(this.#type(base, ''));
        else if (base.isClassOrInterface()) visit(base);
        else if (isReference(base)) visit(base.target);
      }
    };
    visit(declared);
    return found.size === 0 ? '' : ` extends ${[...found].sort().join(', ')}`;
  }

  /** Whether something of ours is in a type. */
  #isOwn(type: ts.Type): boolean {
    const symbol = type.aliasSymbol ?? type.getSymbol();
    if (symbol !== undefined && this.#homeOf(symbol) === undefined) return true;
    const given = isReference(type) ? this.#checker.getTypeArguments(type) : [];
    return given.some((each) => each !== type && this.#isOwn(each));
  }

  /** Whether a type is one that another package declares, and not the language. */
  #isPackages(type: ts.Type): boolean {
    const symbol = type.aliasSymbol ?? type.getSymbol();
    return symbol !== undefined && isNamed(symbol) && Boolean(this.#homeOf(symbol));
  }

  #nameOfType(type: ts.Type): string | undefined {
    const symbol = type.aliasSymbol ?? type.getSymbol();
    return symbol === undefined || !isNamed(symbol) ? undefined : this.#nameOf(symbol);
  }

  /** The name of what an entry exports or another package declares. */
  #nameOf(symbol: ts.Symbol): string | undefined {
    const own = this.#names.get(symbol);
    if (own !== undefined) return own;
    const home = this.#homeOf(symbol);
    return home === '' || home === 'node' ? symbol.name : home && `${home}.${symbol.name}`;
  }

  /** The package that declares a symbol: empty for the language's own, undefined for ours. */
  #homeOf({ declarations = [] }: ts.Symbol): string | undefined {
    const homes = declarations.map((each) => {
      const file = each.getSourceFile();
      if (this.#program.isSourceFileDefaultLibrary(file)) return '';
      const [, name] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file.fileName) ?? [];
      return name?.replace('@types/', '');
    });
    // Other packages may add to what one declares.
    return homes.sort((a = '', b = '') => a.length - b.length)[0];
  }
}

/** Whether the symbol is that of a declaration with a name, rather than of a literal. */
function isNamed(symbol: ts.Symbol): boolean {
  const kinds =
    ts.SymbolFlags.Class | ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias | ts.SymbolFlags.Enum;
  return (symbol.flags & kinds) !== 0;
}

function isReference(type: ts.Type): type is ts.TypeReference {
  return (
    (type.flags & ts.TypeFlags.Object) !== 0 &&
    ((type as ts.ObjectType).objectFlags & ts.ObjectFlags.Reference) !== 0
  );
}

/** Whether a type is what the compiler adds to that of a property that may be absent. */
function isMissing(type: ts.Type): boolean {
  return (type as { readonly debugIntrinsicName?: string }).debugIntrinsicName === 'missing';
}

/** Whether a type is what the compiler takes for one that it does not find. */
function isError(type: ts.Type): boolean {
  return (type as { readonly intrinsicName?: string }).intrinsicName === 'error';
}

/** Whether programs cannot see a member. */
function isHidden(symbol: ts.Symbol): boolean {
  if (hasModifier(symbol, ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) return true;
  const names = symbol.declarations?.map((each) => ts.getNameOfDeclaration(each)) ?? [];
  return names.some((name) => name !== undefined && ts.isPrivateIdentifier(name));
}

function hasModifier({ declarations = [] }: ts.Symbol, flags: ts.ModifierFlags): boolean {
  return declarations.some((each) => (ts.getCombinedModifierFlags(each) & flags) !== 0);
}

/** The compiler keeps this of mapped types, where no declaration says it. */
const CHECKED_READONLY = 8;

function isReadonly(symbol: ts.Symbol): boolean {
  const { links } = symbol as { readonly links?: { readonly checkFlags?: number } };
  if (((links?.checkFlags ?? 0) & CHECKED_READONLY) !== 0) return true;
  const { Accessor, SetAccessor } = ts.SymbolFlags;
  if (symbol.flags & Accessor) return (symbol.flags & SetAccessor) === 0;
  return hasModifier(symbol, ts.ModifierFlags.Readonly);
}

function memberName(symbol: ts.Symbol): string {
  // A symbol has the name `__@dispose@123`; those of the language are lower-case.
  const [, known] = /^__@(\w+)@\d+$/.exec(symbol.name) ?? [];
  if (known !== undefined) return /^[a-z]/.test(known) ? `[Symbol.${known}]` : `[${known}]`;
  return /^[\w$]+$/.test(symbol.name) ? symbol.name : `'${symbol.name}'`;
}

/** Members between braces, on one line where they are short. */
function block(members: readonly string[], alwaysLines = false): string {
  if (members.length === 0) return '{}';
  const inline = `{ ${members.join('; ')} }`;
  if (!alwaysLines && inline.length <= INLINE && !inline.includes('\n')) return inline;
  return `{\n${members.map((member) => `  ${member.replaceAll('\n', '\n  ')}`).join('\n')}\n}`;
}
