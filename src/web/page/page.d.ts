declare module '*.module.css' {
  const names: Readonly<Record<string, string>>;
  export default names;
}

declare module '*.css' {}

declare module 'lucide-static/icons/*.svg' {
  /** The path of an icon of lucide. */
  const d: string;
  export default d;
}
