// Types that the modules share, for `make check-js`. Nothing of this file is shipped.

type Language = "en" | "zh";
type BothLanguages = Record<Language, string>;
type Numbers = Float64Array | Float32Array | Int32Array | Uint8Array | Uint16Array;
type RGB = [number, number, number];
type Span = [number, number];
type Depth = "model" | "head" | "numbers";
type ViewName = "map" | "lines" | "sentence" | "generation" | "compare";
type Side = "query" | "key";
/** Whether one of these names of the state changed. */
type Has = (...names: string[]) => boolean;
type ScaleName = "auto" | "linear" | "log" | "renormalised" | "hidden";
type Merging = "tokens" | "characters" | "words";
type Values = Record<string, any>;

interface Answer {
  about: any;
  arrays: Record<string, Numbers>;
}

interface RectangleRequest { layer: number; head: number; rows: Span; cols: Span; most: Span }

/** What a mount asks for. Each request resolves to an Answer or rejects with a Failure. */
interface Source {
  overview(): Promise<Answer>;
  head(request: { layer: number; head: number }): Promise<Answer>;
  rectangle(request: RectangleRequest): Promise<Answer>;
  explain(request: { layer: number; head: number; query: number; most: number }): Promise<Answer>;
  effect(request: object): Promise<Answer>;
  compare(request: object): Promise<Answer>;
}

/** A sentence, or the key `failure-key` of one with its values. */
interface Failure { key: string; text?: BothLanguages; values?: Values }

interface SideLabels {
  queries: number | null;
  keys: number | null;
  written: number | null;
  queryGroups?: number[];
  keyGroups?: number[];
}

interface Attention {
  name: string;
  kind: "self" | "encoder" | "decoder" | "cross";
  titles: BothLanguages;
  heads: number;
  T: number;
  S: number;
  sample: number;
  samples: number;
  R: number;
  C: number;
  high: number;
  wide: number;
  firstColumn: number;
  firstKey: number;
  prompt: number | null;
  rowsMean: "write" | "read" | "look";
  even: number;
  sinkBar: number;
  labels: { tokens: SideLabels; characters: SideLabels | null; words: SideLabels | null };
  first: (number | null)[];
  noKey: (number | null)[];
  measures: {
    entropy: number[]; sink: number[]; distance: number[]; effect: (number | null)[] | null; pattern: string[]; score: number[];
  };
  can: { rectangle: "exact" | "stored" | "none"; explain: "full" | "without-values" | "none"; effect: boolean;
    /** For each head the queries whose arithmetic a file holds, null for all; absent where every query can be asked for. */
    queries?: (number[] | null)[] | null };
  images: PatchedImage[];
  part: null | { top: number; left: number; T: number; S: number };
  step: number | null;
  beam: number | null;
  rest?: string;
}

interface PatchedImage {
  picture: number | null;
  grid: [number, number];
  first: number;
  positions: number[] | null;
  side: "keys" | "queries" | "both";
  name: string;
  title: BothLanguages;
  extra: string[];
}

interface Overview {
  pictures: { width: number; height: number; data: string }[];
  version: number;
  lang: Language;
  words: Record<Language, Record<string, string>>;
  scale: ScaleName;
  scales: ScaleName[];
  open: [number, number];
  texts: [string, string] | null;
  title: string | null;
  /** The depth to open at, where it is not the head. */
  depth?: Depth;
  labels: string[][];
  colours: { sequential: RGB[]; diverging: RGB[]; nan: RGB };
  records: Attention[];
  merge?: Merging;
  generation: any;
  compare?: { names: [BothLanguages, BothLanguages] } | null;
  levels?: Level[];
  thumbnails: Uint8Array;
}

/** A stored rectangle of a file. */
interface Level { id: number; layer: number; head: number; rows: Span; cols: Span; high: number; wide: number }

/** The weights of a head: row r holds the queries from rowStarts[r] up to rowStarts[r + 1]. R × C values. */
interface Cells {
  R: number;
  C: number;
  rowStarts: ArrayLike<number>;
  colStarts: ArrayLike<number>;
  values: Float32Array;
  /** The number of queries of each row that see any key. */
  attending: Int32Array;
  /** The column that holds the first key, or -1. */
  firstColumn: number;
  /** The first key's share of the head's attention, and its share in a head that attends evenly. */
  first: number | null;
  even: number;
  /** The mean ‖v W_o‖ or ‖v‖ of each column, where known, and which of the two. */
  norms?: Float32Array;
  normsAre?: "output" | "value";
}

/** Weights to levels from 0 to 1, as views/scales.py defines them. */
interface Scale {
  name: ScaleName;
  ceiling: number;
  clipped: boolean;
  logThreshold: number | null;
  level(value: number): number;
}

/** A head that is shown together with others. */
interface OpenHead { head: number; cells: Cells; scale: Scale }

/** One side of a map as it is shown: tokens, characters or words. Positions count tokens, units count what is shown. */
interface Axis {
  side: Side;
  count: number;
  labels: string[] | null;
  written: string[] | null;
  unitOf(position: number): number;
  positionOf(unit: number): number;
  /** The labels of the few units up to another; their positions where there are no tokens, or many units. */
  label(unit: number, stop?: number): string;
  /** The label of the unit that holds a position. */
  at(position: number): string;
  /** The labels of the few units up to another, with their positions. */
  name(unit: number, stop?: number): string;
}

interface Axes { query: Axis; key: Axis }

/** Query and key as positions of tokens. */
type Place = [number, number];

/** All that one view shows; can be written to an address. */
interface State {
  lang: Language;
  theme: "light" | "dark" | null;
  depth: Depth;
  view: ViewName;
  layer: number;
  head: number;
  /** Heads of the layer drawn together as lines. */
  heads: number[];
  scale: ScaleName;
  merge: Merging;
  /** The selected cell, as positions of tokens; null for none. */
  query: number | null;
  key: number | null;
  pins: Place[];
  /** The visible rows and columns in units of the axes; null for all. */
  zoom: { rows: Span; cols: Span } | null;
  /** What the sentence and the neighbours show: keys of the query, or queries of the key. */
  direction: "looks" | "seen";
  lines: "vertical" | "horizontal";
  /** The smallest weight drawn as a line; null chooses one. */
  threshold: number | null;
  show: "maps" | "pattern" | "entropy" | "sink" | "distance" | "effect";
  sort: "layer" | "measure";
  /** The head to compare with. */
  other: { layer: number; head: number } | null;
  compareAs: "side" | "difference";
  /** The step of the arithmetic that the numbers show, from 0. */
  numbersStep: number;
  /** The written token that the generation shows. */
  written: number | null;
  /** That of the likely next tokens; one that is not among the stored ones counts as 1. */
  temperature: number;
}

interface Store {
  get(): State;
  set(patch: Partial<State>): void;
  subscribe(listener: (state: State, changed: Set<string>) => void): () => void;
  /** Tell the subscribers now instead of in the next frame. */
  flush(): void;
}

interface Panel {
  element: HTMLElement;
  update(state: State, has: Has): void;
  /** The cells of the open head as they are shown; null, and why, where they cannot be. */
  show?(cells: Cells | null, problem: string): void;
  /** What is on screen as a picture for a paper; null where there is nothing to save. */
  figure?(ruler: Pen): Figure | null;
  /** The numbers of that picture. */
  table?(): Table | null;
  destroy?(): void;
}

/** What panels share. */
interface Explorer {
  source: Source;
  overview: Overview;
  state: Store;
  root: HTMLElement;
  options: MountOptions;
  say(key: string, values?: Values): string;
  record(layer?: number): Attention;
  headCells(layer: number, head: number): Promise<Cells>;
  /** The cells as they are shown: merged, and without the first key where the scale says so. */
  shownCells(layer: number, head: number): Promise<Cells>;
  axes(layer?: number): Axes;
  /** The font of the view, and a pen that measures texts in it. */
  family: string;
  ruler: Pen;
  scaleOf(...cells: Cells[]): Scale;
  announce(text: string): void;
  /** The value of a CSS variable of the view, named without its dashes. */
  colour(name: string): string;
  /** Read the CSS variables again: the theme changed. */
  forgetColours(): void;
  fail(error: unknown): string;
}

interface MountOptions {
  lang?: Language;
  theme?: "light" | "dark" | null;
  open?: [number, number];
  /** A state to start with, as `stateFromText` reads it. */
  state?: Partial<State>;
  onChange?(state: State): void;
  /** The address that restores a state; without it there is no button for it. */
  link?(state: State): string;
}

/** A picture for a paper, of one of two widths; the text below its title is that of the trace where it has none of its own. */
interface Figure { width: number; height: number; draw(pen: Pen): void; notes?: (string | null | undefined | false)[]; title?: string; text?: string }

/** Numbers in columns for CSV, and as they are for JSON. */
interface Table { columns: string[]; rows: (string | number | null)[][]; about: Record<string, any> }

/** Draws on a canvas or as SVG, with the same calls. */
interface Pen {
  rect(x: number, y: number, width: number, height: number, fill: string | null, stroke?: string, wide?: number): void;
  line(points: number[], stroke: string, wide?: number, opacity?: number, dash?: number[]): void;
  curve(from: Span, to: Span, across: boolean, stroke: string, wide: number, opacity: number): void;
  text(text: string, x: number, y: number, style: TextStyle): void;
  image(source: HTMLCanvasElement, part: [number, number, number, number], to: [number, number, number, number]): void;
  clip(x: number, y: number, width: number, height: number, draw: () => void): void;
  moved(x: number, y: number, draw: () => void, scale?: number): void;
  width(text: string, size: number, weight?: number): number;
}

interface TextStyle {
  size: number;
  fill: string;
  weight?: number;
  align?: "left" | "center" | "right";
  most?: number;
  turned?: boolean;
}
