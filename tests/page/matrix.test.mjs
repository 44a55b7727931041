import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Sums } from '../../src/inftda/pages/assets/matrix.mjs';
import { View } from '../../src/inftda/pages/assets/view.mjs';
import { country, level, made } from './made.mjs';

const sumsOf = (model, address) => {
  const view = View.at(model, address, ['matrix']);
  return new Sums(view, model.flows(view));
};

for (const released of [3, 35, 45]) {
  test(`true counts stand in the row and column of their area, of which ${released} have released flows`, () => {
    const codes = Array.from({ length: 60 }, (_, i) => String(i));
    const flows = [...codes.slice(0, released).map((_, i) => [i, i, 10, 100]), [50, 0, 0, 7], [0, 55, 0, 5]];
    const model = made({ axes: { origin: [level('town', codes)], destination: null }, shared: true, confidential: true, flows });
    const shown = sumsOf(model, '#/0.0.1/0.0.1/matrix');
    for (const [entries, sums, at] of [[shown.rows, shown.rowSum, 0], [shown.columns, shown.columnSum, 1]]) {
      entries.forEach(({ area, rest }, i) => {
        const own = flows.filter((flow) => flow[at] === area).reduce((sum, flow) => sum + flow[3], 0);
        if (!rest) assert.equal(sums[i].truth, own);
      });
      assert.equal(sums.reduce((sum, { truth }) => sum + truth, 0), 100 * released + 12);
    }
    assert.equal(shown.total.truth, 100 * released + 12);
  });
}

test('of many areas the largest are shown, and the others make up one row', () => {
  const codes = Array.from({ length: 50 }, (_, i) => String(i));
  const model = made({ axes: { origin: [level('town', codes)], destination: null }, shared: true, flows: codes.map((_, i) => [i, i, i + 1]) });
  const { rows, rowSum, total } = sumsOf(model, '#/0.0.1/0.0.1/matrix');
  assert.deepEqual([rows.length, rows[0].area, rows.at(-1).rest], [31, 49, 20]);
  assert.equal(rowSum.at(-1).value, 20 * 21 / 2);
  assert.equal(total.value, 50 * 51 / 2);
});

test('sums of rows and columns are the published totals, and others take what is left', () => {
  const model = country({ totals: { '0,1': [440, 25], '1,0': [452, 9] } });
  const { rowSum, columnSum, total } = sumsOf(model, '#/0.0.1/0.0.1/matrix');
  assert.deepEqual(rowSum.map(({ value }) => value), [452, 9]);
  assert.deepEqual(columnSum.map(({ value }) => value), [440, 25]);
  assert.equal(total.value, 457);
});
