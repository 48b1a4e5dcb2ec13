/** Dark or light: what the system says, or what was chosen here and is kept. */
import { effect, signal } from '@preact/signals';

const KEY = 'tapedeck-theme';

export type Theme = 'system' | 'light' | 'dark';

export const theme = signal<Theme>('system');

export function startTheme(): void {
  try {
    const kept = localStorage.getItem(KEY);
    if (kept === 'light' || kept === 'dark') theme.value = kept;
  } catch {
    // A browser that keeps nothing follows the system.
  }
  effect(() => {
    const { dataset } = document.documentElement;
    if (theme.value === 'system') delete dataset['theme'];
    else dataset['theme'] = theme.value;
  });
}

const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' };

export function nextTheme(): void {
  theme.value = NEXT[theme.value];
  try {
    if (theme.value === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme.value);
  } catch {
    // It then lasts as long as the tab.
  }
}
