/* Releases in the pages that Python made of them, against what Python answers; see test_script.py. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';

import { Model } from '../../src/inftda/pages/assets/model.mjs';
import { flowRows, totalRows } from '../../src/inftda/pages/assets/rows.mjs';
import { unpack } from '../../src/inftda/pages/assets/tools.mjs';
import { View } from '../../src/inftda/pages/assets/view.mjs';

const folder = process.env.INFTDA_PAGES;

/* What the page shows for one question: the axes laid out, their levels, and filters on the others. */
function shown(model, { pair, levels, filters }) {
  model.arrange(pair);
  const places = pair.map((number) => `0.0.${levels[number]}`);
  const address = ['#', ...places, 'list', ...filters.map((focus) => focus.join('.'))].join('/');
  const view = View.at(model, address, ['list']);
  assert.ok(view, address);
  const flows = model.flows(view);
  checkTotals(model, view, flows);
  const numbers = Array.from({ length: flows.n }, (_, i) => i).filter((i) => flows.value[i] || flows.truth?.[i]);
  return flowRows(view, flows, numbers).rows.map(({ areas, value, truth }) => {
    const error = model.error(view.levels, value, areas);
    const told = error ? [error.low, error.high, model.grades[model.grade(view.levels, value, areas) - 1].name] : [];
    const codes = [0, 1].map((number) => model.axes[number].code(view.levels[number], areas[number]));
    return [...codes, value, ...(truth === undefined ? told : [truth])];
  });
}

/* Totals of one axis are the same in their list. */
function checkTotals(model, view, flows) {
  const used = view.levels.map((level, i) => (level && !model.axes[i].isEdition ? i : -1)).filter((i) => i >= 0);
  if (used.length !== 1 || used[0] > 1 || view.edition === null) return;
  const [number] = used;
  const shown = new Map(Array.from({ length: flows.n }, (_, i) => [[flows.row, flows.column][number][i], flows.value[i]]));
  for (const { areas, value } of totalRows(model, number, view.levels[number], '', view.edition).rows) {
    assert.equal(value, shown.get(areas[number]) ?? 0);
  }
}

const inOrder = (rows) => rows.map((row) => JSON.stringify(row)).sort();

if (!folder) test('pages of releases', { skip: 'there are none: run pytest' }, () => {});

for (const name of folder ? readdirSync(folder) : []) {
  test(`numbers, intervals and grades of ${name} are those of the release`, async () => {
    const { packed, answers } = JSON.parse(readFileSync(join(folder, name), 'utf-8'));
    const { header, numbers } = await unpack(packed);
    const model = new Model(header, numbers);
    assert.ok(answers.length);
    for (const answer of answers) {
      model.use(answer.using);
      assert.deepEqual(inOrder(shown(model, answer)), inOrder(answer.rows), JSON.stringify({ ...answer, rows: null }));
    }
  });
}
