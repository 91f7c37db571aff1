"use strict";
// Keys on every page: j and k walk through turns, f through failed calls, e opens and closes every fold, / goes to the first field.
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (typing && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.target.form.requestSubmit();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const walk = (selector, step) => {
    const places = [...document.querySelectorAll(selector)];
    const tops = places.map((place) => Math.round(place.getBoundingClientRect().top));
    const found = step > 0 ? places[tops.findIndex((top) => top > 12)] : places[tops.findLastIndex((top) => top < 4)];
    if (found) {
      found.tabIndex = -1;
      found.focus({ preventScroll: true });
      found.scrollIntoView();
    }
  };
  if (event.key === "j") walk(".turn", 1);
  else if (event.key === "k") walk(".turn", -1);
  else if (event.key === "f") walk(".call.failed", 1);
  else if (event.key === "e") {
    const folds = [...document.querySelectorAll("details")];
    const open = folds.some((fold) => !fold.open);
    folds.forEach((fold) => { fold.open = open; });
  } else if (event.key === "/") {
    const field = document.querySelector("main input, main textarea");
    if (field) { field.focus(); event.preventDefault(); }
  }
});
// Picking a question of the cookbook puts its SQL into the box.
const picker = document.getElementById("question");
if (picker) {
  picker.addEventListener("change", () => {
    const chosen = picker.selectedOptions[0].dataset.sql;
    if (chosen) document.getElementById("q").value = chosen;
  });
}
