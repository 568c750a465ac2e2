const PATHS = {
  overview: 'M3 13h5V3H3zM12 17h5V8h-5zM3 17h5v-1H3zM12 5h5V3h-5z',
  deliveries: 'M3 10h4l2 3h2l2-3h4M3 10l2.5-6h9l2.5 6v6H3z',
  users:
    'M7.5 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 17c0-3 2.5-5 5.5-5s5.500 2 5.500 5M13 3.500a3 3 0 0 1 0 5.500M14.500 12.300c2 .6 3.500 2.400 3.500 4.700',
  relations: 'M3 4h14v12H3zM3 8h14M8 8v8M3 12h14',
  requests: 'M3 7h13m-4-4 4 4-4 4M17 14H4m4-3-4 3 4 4',
  loggers: 'M4 3v8M4 15v2M10 3v2M10 9v8M16 3v9M16 16v1M2 13h4M8 7h4M14 14h4',
  log: 'M4 5h12M4 9h12M4 13h8M4 17h5',
  metrics: 'M3 3v14h14M6 13l3-4 3 2 4-6',
  environment: 'M3 6h14M3 14h14M7 6a1.500 1.500 0 1 0 0-.1M13 14a1.500 1.500 0 1 0 0-.1',
  threads: 'M5 3c0 5 10 4 10 9M15 3c0 5-10 4-10 9M5 12v5M15 12v5',
  link: 'M8 4H4v12h12v-4M11 3h6v6M17 3l-8 8',
  lock: 'M5 9h10v8H5zM7 9V6a3 3 0 0 1 6 0v3',
  alert: 'M10 3 2.500 16.500h15zM10 8v4M10 14.200v.2',
  search: 'M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12zM13.500 13.500 17 17',
  menu: 'M3 5h14M3 10h14M3 15h14',
  pause: 'M7 4v12M13 4v12',
  play: 'M6 4l10 6-10 6z',
  send: 'M3 10 17 3l-4 14-3-6z',
  replay: 'M4 10a6 6 0 1 0 2-4.500M4 3v3.500h3.500',
  close: 'M5 5l10 10M15 5 5 15',
  copy: 'M7 7h9v10H7zM13 7V3H4v10h3',
  back: 'M12 4l-6 6 6 6',
  done: 'M4 10.500 8 14.500 16 6',
} as const;

export type IconName = keyof typeof PATHS;

/** A decorative icon; the text beside it carries the meaning. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
