import { useEffect, useState } from 'react';

/** The colours of a plot; a canvas cannot use CSS custom properties. */
interface Theme {
  readonly soft: string;
  readonly line: string;
  readonly colours: readonly string[];
}

const DARK = matchMedia('(prefers-color-scheme: dark)');

const LIGHT_THEME: Theme = {
  soft: '#5b6472',
  line: '#e8ebf0',
  colours: ['#3451d1', '#0d8a72', '#b26a00', '#8b3fb8', '#c2334d', '#4d6b8a'],
};
const DARK_THEME: Theme = {
  soft: '#98a2b3',
  line: '#262c36',
  colours: ['#8da2ff', '#4cc9ae', '#e5a84b', '#c98bf0', '#ff8a9b', '#9db8d6'],
};

const themeOf = () => (DARK.matches ? DARK_THEME : LIGHT_THEME);

/** Follows the system's light or dark scheme. */
export function useTheme(): Theme {
  const [theme, setTheme] = useState(themeOf);
  useEffect(() => {
    const follow = () => setTheme(themeOf());
    DARK.addEventListener('change', follow);
    return () => DARK.removeEventListener('change', follow);
  }, []);
  return theme;
}
