import './style/base.css';
import './style/parts.css';
import './style/pages.css';
import './style/relations.css';
import { createRoot } from 'react-dom/client';
import { App } from './app.tsx';

const container = document.getElementById('console');
if (container === null) throw new Error('The page lacks its #console element.');
createRoot(container).render(<App />);
