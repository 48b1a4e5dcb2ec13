/** Equal for texts that differ in case alone. Without the final sigma, so that a part of a text folds as the whole does. */
export function foldCase(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}
