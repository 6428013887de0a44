// Colours of the style sheet come out as the canvas needs them, and anew when the theme of the page changes.

export class Theme {
  #probe: HTMLElement;
  #known = new Map<string, string>();
  #observer: MutationObserver;
  #media = window.matchMedia?.("(prefers-color-scheme: dark)");
  #changed: () => void;

  constructor(root: HTMLElement, changed: () => void) {
    this.#probe = document.createElement("span");
    this.#probe.hidden = true;
    root.append(this.#probe);
    this.#changed = () => {
      this.#known.clear();
      changed();
    };
    this.#observer = new MutationObserver(this.#changed);
    const options = {
      attributes: true,
      attributeFilter: [
        "class",
        "style",
        "theme",
        "data-jp-theme-light",
        "data-jp-theme-name",
        "data-vscode-theme-kind",
      ],
    };
    this.#observer.observe(document.documentElement, options);
    this.#observer.observe(document.body, options);
    this.#media?.addEventListener?.("change", this.#changed);
  }

  /** A token of the style sheet as a colour; a property that refers to others is no colour yet.
   *
   * A busy page may draw a panel before it is in the document or its style sheet is there. What is found then is no
   * colour, and is asked for again.
   */
  color(token: string): string {
    const known = this.#known.get(token);
    if (known !== undefined) return known;
    this.#probe.style.color = `var(${token})`;
    const style = getComputedStyle(this.#probe);
    const color = style.color;
    if (style.getPropertyValue(token).trim()) this.#known.set(token, color);
    return color;
  }

  close(): void {
    this.#observer.disconnect();
    this.#media?.removeEventListener?.("change", this.#changed);
  }
}

/** A colour with an opacity, for areas. Computed colours are rgb() or color(); both take a slash. */
export function faint(color: string, opacity: number): string {
  const rgb = /^rgba?\(([\d.]+)[ ,]+([\d.]+)[ ,]+([\d.]+)/.exec(color);
  return rgb ? `rgba(${rgb[1]}, ${rgb[2]}, ${rgb[3]}, ${opacity})` : color;
}
