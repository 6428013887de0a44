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

  /** A token of the style sheet as a colour; a property that refers to others is no colour yet. */
  color(token: string): string {
    let color = this.#known.get(token);
    if (color === undefined) {
      this.#probe.style.color = `var(${token})`;
      color = getComputedStyle(this.#probe).color;
      this.#known.set(token, color);
    }
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
