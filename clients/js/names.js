/**
 * Chooses the short names in minified code so that gzip packs it well: a tenth of what a browser downloads
 * is which letter stands for which variable, and minifiers go by frequency alone.
 *
 * Variables, private members and the members that only the sources know are renamed one by one, for as long
 * as that makes the packed code shorter. The same code has the same names every time.
 */

import { parse } from "acorn";
import { analyze } from "eslint-scope";
import { gzip } from "pako";

const LETTERS = [..."etnrasilouchmpdgfwbykvxqjz$ETSANI"];
const FIRST_LETTERS = 16;
const MOST_SWEEPS = 8;
const LEAST_GAIN = 2;

/** Calls `act` on a node and all nodes in it. */
function visit(node, act) {
  if (Array.isArray(node)) for (const one of node) visit(one, act);
  if (typeof node?.type !== "string") return;
  act(node);
  for (const [name, part] of Object.entries(node)) {
    if (part && typeof part === "object" && name !== "range") visit(part, act);
  }
}

/** Function declarations as arrow functions: with them, all declarations are of one kind. None uses `this`. */
export function withArrows(code) {
  for (;;) {
    let last;
    visit(parse(code, { ecmaVersion: 2024, sourceType: "module" }), (node) => {
      if (node.type === "FunctionDeclaration") last = node;
    });
    if (!last) return code.replace(/\bvar /g, "let ");
    const { start, end, async, id, params, body } = last;
    const text = ({ start, end }) => code.slice(start, end);
    const arrow = `let ${id.name} = ${async ? "async " : ""}(${params.map(text)}) => ${text(body)};`;
    code = code.slice(0, start) + arrow + code.slice(end);
  }
}

/**
 * What has a name in the code, and the code around it.
 *
 * @returns {{named: object[], pieces: unknown[], written: Function}} of what is named: its name now, those
 *   that it must not have, the others that it must differ from, the pieces that it is in, and, if it is
 *   exported, as what
 */
function namesOf(code, members) {
  const tree = parse(code, { ecmaVersion: 2024, sourceType: "module" });
  visit(tree, (node) => (node.range = [node.start, node.end]));
  const manager = analyze(tree, { ecmaVersion: 2022, sourceType: "module" });
  const named = [];
  const made = (name, forbidden) => named.push({ name, forbidden, rivals: new Set(), uses: [] }) - 1;
  // Where in the code a name is, and whose it is.
  const at = new Map();
  const rivals = (ids) => {
    const group = [...ids];
    for (const one of group) for (const other of group) if (one !== other) named[one].rivals.add(other);
  };

  // Variables: two that are seen in one scope must differ.
  const globals = new Set(manager.globalScope.through.map(({ identifier }) => identifier.name));
  const seen = new Map();
  for (const scope of manager.scopes) {
    for (const variable of scope.variables.filter(({ defs }) => defs.length)) {
      const places = [...variable.identifiers, ...variable.references.map(({ identifier }) => identifier)];
      const known = places.map(({ start }) => at.get(start)).find((id) => id !== undefined);
      const id = known ?? made(variable.name, globals);
      for (const { start } of places) at.set(start, id);
      const scopes = new Set([scope]);
      for (const { from } of variable.references) {
        for (let inner = from; inner && inner !== scope; inner = inner.upper) scopes.add(inner);
      }
      for (const one of scopes) seen.set(one, (seen.get(one) ?? new Set()).add(id));
    }
  }
  for (const group of seen.values()) rivals(group);

  // Members that only the sources know, and private ones.
  const public_ = new Set();
  const known = new Map();
  const member = ({ name, start }, isShorthand = false) => {
    if (!members.has(name)) return public_.add(name);
    if (!known.has(name)) known.set(name, made(name, public_));
    // A shorthand's key is its variable, too.
    return isShorthand || at.set(start, known.get(name));
  };
  visit(tree, (node) => {
    const { type, computed, property, key } = node;
    if (type === "MemberExpression" && !computed && property.type === "Identifier") member(property);
    const isMember = ["Property", "MethodDefinition", "PropertyDefinition"].includes(type);
    if (isMember && !computed && key.type === "Identifier") member(key, node.shorthand);
    if (!type.startsWith("Class") || type === "ClassBody") return;
    const own = new Map();
    visit(node.body, (part) => {
      if (part.type !== "PrivateIdentifier") return;
      if (!own.has(part.name)) own.set(part.name, made(part.name, new Set(["constructor"])));
      at.set(part.start, own.get(part.name));
    });
    rivals(own.values());
  });
  rivals(known.values());

  // The code in pieces: texts, names, and pairs that may be written as one name.
  const places = [];
  visit(tree, (node) => {
    const { type, start, end } = node;
    if (type === "Identifier" && at.has(start)) places.push([start, end, at.get(start)]);
    if (type === "PrivateIdentifier") places.push([start + 1, end, at.get(start)]);
    if (type === "ExportSpecifier") {
      const value = at.get(node.local.start);
      named[value].exported = node.exported.name;
      const join = (key, name) => `${name} as ${key}`;
      places.push([start, end, { value, key: node.exported.name, join }]);
    }
    if (type === "Property" && !node.computed && !node.method && node.kind === "init") {
      const target = node.value.type === "AssignmentPattern" ? node.value.left : node.value;
      const value = at.get(target.start);
      if (target.type !== "Identifier" || value === undefined || node.key.type !== "Identifier") return;
      const key = known.get(node.key.name) ?? node.key.name;
      places.push([start, target.end, { value, key, join: (key, name) => `${key}:${name}` }]);
    }
  });
  places.sort(([one, end], [other, last]) => one - other || last - end);
  const pieces = [];
  let done = 0;
  for (const [start, end, piece] of places) {
    if (start < done) continue;
    pieces.push(code.slice(done, start), piece);
    done = end;
    for (const id of [piece, piece.value, piece.key]) {
      if (typeof id === "number") named[id].uses.push(pieces.length - 1);
    }
  }
  pieces.push(code.slice(done));

  /** A piece as text. */
  const written = (piece, names) => {
    if (typeof piece === "string") return piece;
    if (typeof piece === "number") return names[piece];
    const key = typeof piece.key === "number" ? names[piece.key] : piece.key;
    const value = names[piece.value];
    return key === value ? key : piece.join(key, value);
  };
  return { named, pieces, written };
}

/** The same code by other names, of which `members` are those of members that may change. */
export function renamed(code, members, log) {
  const { named, pieces, written } = namesOf(code, members);
  const names = named.map(({ name }) => name);
  const texts = pieces.map((piece) => written(piece, names));
  const give = (id, name) => {
    names[id] = name;
    for (const place of named[id].uses) texts[place] = written(pieces[place], names);
  };
  const size = () => gzip(texts.join(""), { level: 9 }).length;
  let least = size();
  let ties = 1;
  /** Gives one the name, and its own to whatever has that and must differ; takes it back if that is no gain. */
  const attempt = (id, name) => {
    const { forbidden, rivals } = named[id];
    const own = names[id];
    const others = [...rivals].filter((other) => names[other] === name);
    const isFree = (other) =>
      !named[other].forbidden.has(own) &&
      [...named[other].rivals].every((one) => one === id || names[one] !== own);
    if (name === own || forbidden.has(name) || !others.every(isFree)) return;
    give(id, name);
    for (const other of others) give(other, own);
    const found = size();
    // Now and then one that is as good: it leads on to others.
    ties = (ties * 48271) % 2147483647;
    if (found < least || (found === least && ties % 3 === 0)) least = found;
    else {
      give(id, own);
      for (const other of others) give(other, name);
    }
  };
  const order = [...named.keys()].filter((id) => named[id].uses.length)
    .sort((one, other) => named[other].uses.length - named[one].uses.length);
  for (let sweep = 0; sweep < MOST_SWEEPS; sweep++) {
    const before = least;
    for (const id of order) {
      if (named[id].exported) attempt(id, named[id].exported);
      for (const letter of LETTERS.slice(0, sweep ? undefined : FIRST_LETTERS)) attempt(id, letter);
      if (named[id].name.length > 1) attempt(id, named[id].name);
    }
    log(texts.join(""), least);
    if (before - least < LEAST_GAIN) break;
  }
  return texts.join("");
}
