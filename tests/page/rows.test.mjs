import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fileOf, flowRows, totalRows } from '../../src/inftda/pages/assets/rows.mjs';
import { View } from '../../src/inftda/pages/assets/view.mjs';
import { country } from './made.mjs';

test('a file has all that is in view, with names, intervals and grades where they are known', () => {
  const names = ['Lake', 'Dale, East', null, null];
  const model = country({ intervals: { '2,2': [[0, 1, 370, 430], [1, 1, 20, 44]] } });
  model.axes.forEach((axis) => { axis.levels[2].names = names; });
  const view = View.at(model, '#/1.0.2/0.0.2/list', ['list']);
  const { name, lines } = fileOf(model, flowRows(view, model.flows(view), [0, 1, 2]));
  assert.equal(name, 'flows-1.0.2-0.0.2.csv', 'without the word for the list');
  assert.deepEqual(lines, [
    'origin_level,origin,origin_name,destination_level,destination,destination_name,flow,low,high,grade\n',
    'town,1,Lake,town,2,"Dale, East",400,370,430,A\n',
    'town,2,"Dale, East",town,2,"Dale, East",30,20,44,C\n',
    'town,2,"Dale, East",town,3,3,20,,,\n',
  ]);
});

test('a file of a confidential page is marked in its name and in every line', () => {
  const model = country({ confidential: true, flows: [[0, 1, 400, 390], [1, 1, 0, 4]] });
  const { name, lines } = fileOf(model, totalRows(model, 0, 1, ''));
  assert.equal(name, 'CONFIDENTIAL-totals-origin-1.csv');
  assert.deepEqual(lines, ['origin_level,origin,flow,true,notice\n', 'region,N,400,394,CONFIDENTIAL\n', 'region,S,0,0,CONFIDENTIAL\n']);
});

test('totals are found by code or name', () => {
  assert.deepEqual(totalRows(country(), 0, 2, '4').rows.map(({ areas, value }) => [areas[0], value]), [[3, 7]]);
});
