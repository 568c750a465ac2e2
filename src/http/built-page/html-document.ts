/** An HTML document in English. `head` and `content` are HTML; the icon is a URL, by default none is asked for. */
export function htmlDocument(title: string, head: string, content: string, icon = 'data:,'): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="${icon}">
${head}</head>
<body>
${content}</body>
</html>
`;
}
