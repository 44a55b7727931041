/* Outlines of areas, as published by the custodian, coarse enough for a page. */
export class Shapes {
  constructor({ axis, level, areas, scale }, numbers) {
    this.axis = axis;
    this.level = level;
    /* Rings by area: the inner ones are holes in the others. */
    this.rings = new Map();
    let at = 0;
    for (const area of areas) {
      const size = numbers[at++];
      const points = new Float64Array(2 * size);
      const box = emptyBox();
      let [x, y] = [0, 0];
      for (let i = 0; i < points.length; i += 2) {
        x += numbers[at++] / scale;
        y += numbers[at++] / scale;
        points[i] = x;
        points[i + 1] = y;
        extend(box, x, y);
      }
      if (!this.rings.has(area)) this.rings.set(area, []);
      this.rings.get(area).push({ points, box });
    }
  }
}

export const emptyBox = () => [Infinity, Infinity, -Infinity, -Infinity];

export function extend(box, x, y) {
  box[0] = Math.min(box[0], x);
  box[1] = Math.min(box[1], y);
  box[2] = Math.max(box[2], x);
  box[3] = Math.max(box[3], y);
}
