// A slider over editions: shades of the maps, and which list is shown.
const shades = JSON.parse(document.getElementById("shades").textContent);
const slider = document.getElementById("edition");
const label = document.getElementById("edition-name");
const lists = [...document.querySelectorAll("[data-edition]")];
const maps = [...document.querySelectorAll("svg.map")].map((map) =>
  [...map.querySelectorAll("[data-area]")].map((area) => [area, Number(area.dataset.area)]));

function show() {
  const at = Number(slider.value);
  maps.forEach((areas, number) => {
    for (const [area, which] of areas) area.setAttribute("class", `m${shades[number][at][which]}`);
  });
  lists.forEach((list) => {
    const is_shown = Number(list.dataset.edition) === at;
    list.hidden = !is_shown;
    if (is_shown) {
      label.textContent = list.dataset.name;
      slider.setAttribute("aria-valuetext", list.dataset.name);
    }
  });
}

slider.addEventListener("input", show);
show();
