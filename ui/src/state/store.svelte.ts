/** A reducer's state as a rune: `current` is replaced, never changed in place, so unchanged parts keep identity. */
export class Store<S, E> {
  current: S = $state.raw() as S;
  readonly #apply: (state: S, event: E) => S;

  constructor(apply: (state: S, event: E) => S, initial: S) {
    this.#apply = apply;
    this.current = initial;
  }

  dispatch(event: E): void {
    this.current = this.#apply(this.current, event);
  }
}
