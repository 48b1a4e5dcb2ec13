/** How much of what passes is held until it is whole. What finds no room passes as it is, and nobody waits for it. */

/** Of one body, or one event. */
export const MOST_BODY_BYTES = 16 * 1024 * 1024;

/** Of all that are held at one time. */
const MOST_HELD_BYTES = 256 * 1024 * 1024;

/** What one body takes. */
export type Share = {
  /** False: there is no room for so many more. */
  take(bytes: number): boolean;
  /** It is held no more. */
  free(): void;
};

export type Capacity = { share(): Share };

/** `onFull` is called for each body or event that finds none. */
export function createCapacity(onFull: () => void): Capacity {
  let held = 0;
  return {
    share() {
      let own = 0;
      return {
        take(bytes) {
          own += bytes;
          held += bytes;
          if (own <= MOST_BODY_BYTES && held <= MOST_HELD_BYTES) return true;
          onFull();
          return false;
        },
        free() {
          held -= own;
          own = 0;
        },
      };
    },
  };
}
