// Finds faults that a reader of a page would see, and puts them into the page as text. `report.rs`
// inserts this before everything else in a page, and reads the findings from the loaded document.
"use strict";
const wrong = [];
window.addEventListener("error", (event) => {
  wrong.push("error: " + (event.message || event.target.outerHTML));
}, true);
window.addEventListener("load", () => {
  const box = (element) => element.getBoundingClientRect();
  const name = (element) => `${element.tagName} "${element.textContent.trim().slice(0, 40)}"`;

  for (const entry of performance.getEntriesByType("resource")) {
    wrong.push("request: " + entry.name);
  }

  const charts = [...document.querySelectorAll("svg.chart")];
  for (const chart of charts) {
    const title = chart.getAttribute("aria-label");
    const { width, height } = box(chart);
    if (!(width > 100 && height > 50) || !chart.checkVisibility()) {
      wrong.push(`not seen: ${title}: ${width} × ${height}`);
    }
    const view = chart.viewBox.baseVal;
    const drawn = chart.querySelectorAll("path.line, rect.bar, path.thin, circle.dot, circle.doubt");
    if (drawn.length === 0) {
      wrong.push("empty: " + title);
    }
    const texts = [...chart.querySelectorAll("text")].filter((it) => it.textContent.trim());
    const boxes = texts.map((it) => it.getBBox());
    boxes.forEach((it, index) => {
      const fits = it.width > 0 && it.x >= -1 && it.x + it.width <= view.width + 1
        && it.y >= -1 && it.y + it.height <= view.height + 1;
      if (!fits) {
        wrong.push(`text leaves its chart: ${title}: ${name(texts[index])}`);
      }
      boxes.slice(0, index).forEach((other, before) => {
        const across = Math.min(it.x + it.width, other.x + other.width) - Math.max(it.x, other.x);
        const down = Math.min(it.y + it.height, other.y + other.height) - Math.max(it.y, other.y);
        if (across > 1 && down > 4) {
          wrong.push(`texts overlap: ${title}: ${name(texts[index])}, ${name(texts[before])}`);
        }
      });
    });
  }

  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) {
    wrong.push(`wider than the window: ${page.scrollWidth} of ${page.clientWidth}`);
  }
  for (const element of document.querySelectorAll("h1, h2, h3, p, dt, dd, li, .tile > *, a, summary")) {
    if (element.checkVisibility() && element.scrollWidth > element.clientWidth + 1
        && getComputedStyle(element).display !== "inline") {
      wrong.push("text leaves its box: " + name(element));
    }
  }

  // Contrast of texts, as the Web Content Accessibility Guidelines define it (AA).
  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const linear = [r, g, b].map((it) => it / 255)
      .map((it) => (it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ground = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = channels(getComputedStyle(it).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) {
        return colour;
      }
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll("h1, h2, p, a, td, th, .tile > *, summary, svg text")) {
    const style = getComputedStyle(element);
    const colour = channels(element instanceof SVGElement ? style.fill : style.color);
    const [dark, bright] = [light(colour), light(ground(element))].sort((a, b) => a - b);
    if ((bright + 0.05) / (dark + 0.05) < 4.5) {
      wrong.push(`hard to read: ${name(element)}: ${style.color}`);
    }
  }

  const verdict = document.createElement("pre");
  verdict.id = "verdict";
  verdict.textContent = JSON.stringify({ charts: charts.length, wrong: [...new Set(wrong)] });
  document.body.append(verdict);
});
