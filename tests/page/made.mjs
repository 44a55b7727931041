/* Pages made by hand: what a page holds, in the words of a test. */

import { Model } from '../../src/inftda/pages/assets/model.mjs';

/* Codes of a level; `children` says how many areas of it each area of the level above has. */
export const level = (name, codes, { children = [codes.length], ...more } = {}) => ({ name, codes, children, names: null, rank: null, ...more });

export const GRADES = [
  { name: 'A', upTo: 0.1, label: 'within ±10 %' }, { name: 'B', upTo: 0.25, label: '±10 to 25 %' },
  { name: 'C', upTo: 0.5, label: '±25 to 50 %' }, { name: 'D', upTo: null, label: 'beyond ±50 %: may be zero' },
];

const WORDS = { row: 'From', column: 'To', from: 'From', to: 'to', cells: 'flows', unit: 'Trips', units: 'trips' };

/* A model of a table: the levels of each axis by its name, flows as [area, ..., value, true value],
   and by levels ("1,2") intervals as [area, ..., low, high] and totals as values of all cells. */
export function made({ axes, flows, intervals = {}, totals = {}, ...more }) {
  const entries = Object.entries(axes).map(([name, levels]) => ({ name, title: name, whole: `All of ${name}`, levels }));
  const sizes = (depths) => depths.map((depth, i) => (depth ? (entries[i].levels ?? entries[0].levels)[depth - 1].codes.length : 1));
  const number = (depths, areas) => sizes(depths).reduce((sum, size, i) => sum * size + areas[i], 0);
  const arrays = {};
  const add = (name, depths, rows, columns) => {
    const n = entries.length;
    const sorted = [...rows].sort((a, b) => number(depths, a) - number(depths, b));
    const cells = sorted.map((row) => number(depths, row));
    arrays[`${name}.cells`] = cells.map((cell, i) => cell - (i ? cells[i - 1] : 0));
    columns.forEach((column, at) => { arrays[`${name}.${column}`] = sorted.map((row) => row[n + at]); });
  };
  const finest = entries.map(({ levels }) => (levels ?? entries[0].levels).length);
  add('flows', finest, flows, more.confidential ? ['value', 'truth'] : ['value']);
  for (const [key, rows] of Object.entries(intervals)) {
    const wide = rows.map((row) => [...row.slice(0, -1), row.at(-1) - row.at(-2)]);
    add(`intervals-${key}`, key.split(',').map(Number), wide, ['low', 'width']);
  }
  for (const [key, values] of Object.entries(totals)) {
    arrays[`totals-${key}.cells`] = values.map((_, i) => Number(i > 0));
    arrays[`totals-${key}.value`] = values;
  }
  const header = {
    confidential: false, formulas: null, shared: false, words: WORDS, axes: entries, graded: true, unknown: [''], editions: null, opens: [1, 1],
    summed: [], uses: {}, grades: GRADES, unlisted: 0.5, arrays, ...more,
  };
  return new Model(header, (name) => Float64Array.from(arrays[name]));
}

/* A country of two regions with two towns each, and trips between them. */
export const country = (more = {}) => made({
  axes: { origin: [level('region', ['N', 'S']), level('town', ['1', '2', '3', '4'], { children: [2, 2] })], destination: null },
  shared: true, flows: [[0, 1, 400], [1, 1, 30], [1, 2, 20], [3, 0, 7]], ...more,
});
