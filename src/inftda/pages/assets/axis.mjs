/* An axis: the areas of each level, from coarse to fine, with codes and labels. */

import { folded, running } from './tools.mjs';

export class Axis {
  constructor(entry, shared, isEdition) {
    /* Editions are never added up. */
    this.isEdition = isEdition;
    this.name = entry.name;
    this.title = entry.title;
    const levels = entry.levels ?? shared;
    this.levels = [{ name: 'all', codes: ['all'], names: [entry.whole] }, ...levels];
    this.depth = levels.length;
    this.labels = [];
    /* spans[level][i] .. spans[level][i + 1] are the finest areas inside area i of the level. */
    this.spans = new Array(this.depth + 1);
    const n = this.size(this.depth);
    this.spans[this.depth] = Int32Array.from({ length: n + 1 }, (_, i) => i);
    for (let level = this.depth - 1; level >= 0; level -= 1) {
      const below = this.spans[level + 1];
      const starts = running([0, ...this.levels[level + 1].children]);
      this.spans[level] = Int32Array.from(starts, (start) => below[start]);
    }
    /* above[level][leaf] is the area of the level that holds the finest area. */
    this.above = this.spans.map((span) => {
      const above = new Int32Array(n);
      for (let i = 0; i + 1 < span.length; i += 1) above.fill(i, span[i], span[i + 1]);
      return above;
    });
  }

  size(level) { return this.levels[level].codes.length; }

  code(level, index) { return this.levels[level].codes[index]; }

  nameOf(level, index) {
    const { names, codes } = this.levels[level];
    return (names && names[index]) || codes[index];
  }

  /* Areas of a level in the order of the areas table. */
  inOrder(level, areas) {
    const { rank } = this.levels[level];
    return rank ? [...areas].sort((a, b) => rank[a] - rank[b]) : areas;
  }

  /* The name, with the area around it where other areas of the level have the same name. */
  label(level, index) {
    this.labels[level] ??= this.tellApart(level);
    return this.labels[level][index];
  }

  tellApart(level) {
    const { codes } = this.levels[level];
    const names = codes.map((_, i) => this.nameOf(level, i));
    const again = repeats(names);
    if (!again.size) return names;
    const around = (name, i) => (level > 1 ? `${name}, ${this.nameOf(level - 1, this.parent(level, i))}` : name);
    const labels = names.map((name, i) => (again.has(name) ? around(name, i) : name));
    const still = repeats(labels);
    return labels.map((label, i) => (still.has(label) ? `${label} (${codes[i]})` : label));
  }

  parent(level, index) { return this.above[level - 1][this.spans[level][index]]; }

  /* The area and those it lies in, coarse to fine. */
  path(level, index) {
    const leaf = this.spans[level][index];
    return Array.from({ length: level + 1 }, (_, at) => ({ level: at, index: this.above[at][leaf] }));
  }

  /* Areas of `level` inside a focus: [first, one after the last]. */
  inside(focus, level) {
    const first = this.above[level][this.spans[focus.level][focus.index]];
    const last = this.above[level][this.spans[focus.level][focus.index + 1] - 1];
    return [first, last + 1];
  }

  /* The initial focus of an axis: all of it, or its last edition. */
  get start() { return this.isEdition ? { level: 1, index: this.size(1) - 1 } : { level: 0, index: 0 }; }

  /* The next level at which a focus has more than one area; the finest if there is none. */
  nextLevel(focus) {
    for (let level = focus.level + 1; level <= this.depth; level += 1) {
      const [first, last] = this.inside(focus, level);
      if (last - first > 1) return level;
    }
    return this.depth;
  }

  search(text, limit) {
    const wanted = folded(text.trim());
    if (!wanted) return [];
    this.folded ??= this.levels.map(({ names, codes }) =>
      codes.map((code, i) => folded(`\n${names?.[i] ?? ''}\n${code}\n`)));
    /* Equal names or codes first, then those that begin with the text, then those that contain it. */
    const kinds = [`\n${wanted}\n`, `\n${wanted}`, wanted];
    const found = kinds.map(() => []);
    for (let level = 1; level <= this.depth; level += 1) {
      this.folded[level].forEach((text, index) => {
        const kind = kinds.findIndex((one) => text.includes(one));
        if (kind >= 0) found[kind].push({ level, index });
      });
    }
    return found.flat().slice(0, limit);
  }
}

/* Texts that are there more than once. */
function repeats(texts) {
  const seen = new Set();
  return new Set(texts.filter((text) => seen.has(text) || !seen.add(text)));
}
