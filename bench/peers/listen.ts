/** The address on which a peer listens. */
export const address = { host: '127.0.0.1', port: Number(process.env.PORT) } as const;
