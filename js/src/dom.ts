// Elements. Text from the kernel goes in by text nodes only.

type Attributes = Record<string, string | boolean>;
type Child = Node | string;

export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  setAll(element, attributes);
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** A small picture made of one path, for eyes only: the words beside it say the same. */
export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  setAll(svg, { viewBox: "0 0 16 16", width: "14", height: "14", "aria-hidden": "true", class: "ct-icon" });
  const shape = document.createElementNS(SVG, "path");
  shape.setAttribute("d", path);
  svg.append(shape);
  return svg;
}

export function swatch(dash: number[], kind: "line" | "area"): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  setAll(svg, { viewBox: "0 0 18 10", width: "18", height: "10", "aria-hidden": "true", class: "ct-swatch" });
  if (kind === "area") {
    const area = document.createElementNS(SVG, "rect");
    setAll(area, { x: "0", y: "1", width: "18", height: "8", class: "ct-swatch-area" });
    svg.append(area);
  }
  const line = document.createElementNS(SVG, "path");
  setAll(line, { d: kind === "area" ? "M0 1.5H18" : "M0 5H18", "stroke-dasharray": dash.join(" ") });
  svg.append(line);
  return svg;
}

function setAll(element: Element, attributes: Attributes): void {
  for (const [name, content] of Object.entries(attributes)) {
    if (content === true) element.setAttribute(name, "");
    else if (content !== false) element.setAttribute(name, content);
  }
}

/** Set a text if it is another one, so that nothing is laid out anew for nothing. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element: HTMLElement, visible: boolean): void {
  if (element.hidden === visible) element.hidden = !visible;
}
