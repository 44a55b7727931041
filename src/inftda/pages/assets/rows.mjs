/* Rows of lists: flows of a view or totals of an axis, with the axes that are named; and as a file. */

import { csvWriter, folded } from './tools.mjs';

/* The flows of a view with these numbers, in this order. */
export function flowRows(view, flows, numbers) {
  const { words } = view.model;
  return {
    levels: view.levels, named: [0, 1], titles: [words.row, words.column], file: view.fileName,
    rows: numbers.map((i) => ({
      areas: view.areas(flows.row[i], flows.column[i]), value: flows.value[i], truth: flows.truth?.[i],
    })),
  };
}

/* Totals of the areas of an axis whose code or name has a text in it, from the largest down. */
export function totalRows(model, number, level, text, edition = undefined) {
  const axis = model.axes[number];
  const { at, value, truth } = model.totals(number, level, edition);
  const wanted = folded(text.trim());
  const order = Array.from(value.keys())
    .filter((i) => folded(`${axis.label(level, i)}\n${axis.code(level, i)}`).includes(wanted))
    .sort((a, b) => value[b] - value[a] || a - b);
  return {
    levels: at.levels, named: [number], titles: [axis.levels[level].name],
    file: `totals-${axis.name.replace(/\W/g, '')}-${level}`,
    rows: order.map((i) => ({ areas: at.areas(i), value: value[i], truth: truth?.[i] })),
  };
}

/* Name and lines of the file of some rows, all of them. */
export function fileOf(model, { levels, named, rows, file }) {
  const edition = model.axes.findIndex(({ isEdition }) => isEdition);
  const isOne = edition >= 0 && !named.includes(edition);
  const columns = named.map((number) => ({ number, axis: model.axes[number], level: levels[number] }));
  const hasEnds = model.hasIntervals(levels);
  const isNamed = ({ axis, level }) => Boolean(axis.levels[level].names);
  const head = [
    ...(isOne ? ['edition'] : []),
    ...columns.flatMap((one) => [`${one.axis.name}_level`, one.axis.name, ...(isNamed(one) ? [`${one.axis.name}_name`] : [])]),
    model.isEstimated ? 'estimate' : 'flow',
    ...(model.isConfidential ? ['true', 'notice'] : hasEnds ? ['low', 'high', 'grade'] : [])];
  const lines = rows.map(({ areas, value, truth }) => {
    const error = model.isConfidential ? null : model.error(levels, value, areas);
    const grade = error && model.grades[model.grade(levels, value, areas) - 1].name;
    return [
      ...(isOne ? [model.axes[edition].code(1, areas[edition])] : []),
      ...columns.flatMap((one) => [one.axis.levels[one.level].name, one.axis.code(one.level, areas[one.number]),
        ...(isNamed(one) ? [one.axis.nameOf(one.level, areas[one.number])] : [])]),
      value,
      ...(model.isConfidential ? [truth, 'CONFIDENTIAL'] : hasEnds ? [error?.low, error?.high, grade] : [])];
  });
  const name = `${model.isConfidential ? 'CONFIDENTIAL-' : ''}${file}.csv`;
  return { name, lines: [head, ...lines].map(csvWriter(model.header.formulas)) };
}
