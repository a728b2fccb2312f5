"use strict";
// The page is readable without this script. It only shows details of marks and zooms timelines.
for (const figure of document.querySelectorAll(".timeline")) {
  const scroll = figure.querySelector(".scroll");
  const wide = figure.querySelector(".wide");
  const detail = figure.querySelector(".detail");
  const marks = [...figure.querySelectorAll(".row .mark")];
  const hint = "Point at a mark or use the arrow keys to see its details.";
  let picked = -1;
  let width = 1;

  const pick = (index) => {
    if (picked >= 0) marks[picked].classList.remove("picked");
    picked = index;
    const mark = marks[index];
    mark.classList.add("picked");
    detail.textContent = mark.title;
    return mark;
  };
  detail.textContent = hint;
  figure.addEventListener("mouseover", (event) => {
    const mark = event.target.closest(".row .mark");
    if (mark) pick(marks.indexOf(mark));
  });
  const zoom = (factor) => {
    const middle = (scroll.scrollLeft + scroll.clientWidth / 2) / wide.offsetWidth;
    width = Math.min(4096, Math.max(1, width * factor));
    wide.style.width = width * 100 + "%";
    scroll.scrollLeft = middle * wide.offsetWidth - scroll.clientWidth / 2;
  };
  scroll.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && marks.length) {
      const mark = pick(Math.min(marks.length - 1, Math.max(0, picked + step)));
      scroll.scrollLeft = mark.offsetLeft - scroll.clientWidth / 2;
    } else if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else return;
    event.preventDefault();
  });
  const buttons = document.createElement("span");
  buttons.className = "zoom";
  for (const [text, name, factor] of [["−", "Narrower", 0.5], ["+", "Wider", 2]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-label", name);
    button.addEventListener("click", () => zoom(factor));
    buttons.append(button);
  }
  figure.querySelector("figcaption").append(buttons);
}
document.documentElement.dataset.ready = String(document.querySelectorAll(".mark").length);
