/** Answers that look similar and are not the same. */
export const DIFFERENT_PAIRS = String.raw`
# another answer
E2_{16} != E3_{16}
18 eggs != 19
5 hours != 5 minutes
\frac{a}{b} = \frac{2}{3} != \frac32
9 \text{ sq. ft.} != 9\text{ cu. ft.}
n\pi, n\in\mathbb{Z} != n\pi, n\in\mathbb{N}
x>2, x\in\mathbb{Z} != x>2
n\in\mathbb{Z} != n
\begin{pmatrix}1\\2\end{pmatrix} != (2,1)
\begin{pmatrix}1&2\end{pmatrix} != \begin{pmatrix}1\\2\end{pmatrix}
60\frac{\text{km}}{\text{h}} != 60\text{ mph}
\frac{\text{km}}{\text{h}} != 60
\sqrt{x^2+2x+1} != x+1
A=\{1,2\}, B=\{3\} != A=\{3\}, B=\{1,2\}
[0, \frac{\pi}{2}) != 0\le\theta\le\frac{\pi}{2}
1, 3, 5, \ldots != 1,3,5
f \circ g != g\circ f
p \land q != p \lor q
x \ne \pm 2 != \mathbb{R}
x>a != a>x
|i|^2 != -1
|3+4i|^2 != -7+24i
|z|^2 != z^2
|e^{ix}|^2 != e^{2ix}
\sqrt{z^2} != z
{1}{2} != 2
3!! != 720
n!! != (n!)!
a=b != b
y = x != y = z
\frac{1}{2}{3} != 1.5
\textbf{(C)}\ 34 != \textbf{(D)}\ 34
\textbf{(C)}\ 34 != D
\textbf{(C)}\ 34 != 35
\textbf{(C)}\ 34 != \textbf{(C)}\ 35
(B) 2 != 2B
2\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}2\\2\end{pmatrix}
\begin{pmatrix}1\\2\end{pmatrix}+\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}1\\2\end{pmatrix}
\begin{pmatrix}1\\2\end{pmatrix}\begin{pmatrix}3&4\end{pmatrix} != \begin{pmatrix}3&4\end{pmatrix}
A\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}1\\2\end{pmatrix}
\text{no solution} != 0
3\mathrm{e}^2 != 3
\mathrm{e}x != x
5\mathbb{Z} != 5
x\in\mathbb{Z}^+ != x\in\mathbb{Z}
k\in\mathbb Z != k \in \mathbb{N}
2\text{ billion} != 2\text{ trillion}
3\text{ hundred} != 3
12\text{ noon} != 12\text{ midnight}
10\text{ East} != 10\text{ West}
5\text{ up} != 5\text{ down}
\text{B},\text{D} != \text{B}
\text{B} != \text{B},\text{D}
\text{A, B, C} != \text{A, B}
\text{not enough information} != \text{enough information}
\text{evil} != \text{vile}
\text{top} != \text{pot}
pot != top
ten != net
\text{ten} != \text{net}
tea != eat
tea != ate
\overline{x} != x
\bar{X} != X
2\bar{3} != 23
\overline{12} != 12
0.\overline{12} != 0.12
0.\overline{12} != 0.\overline{21}
1.\overline{3} != 1.3
\overline{z_1z_2} != z_1z_2
\overline{AB} != \overrightarrow{AB}
g(3x) != 3g(x)
h(x-1) != h(x)-1
F(x)+C != Fx+C
f(3) != 3f
y(0) != 0
f(0) != 0
S(n) != nS
\sigma(6) != 6\sigma
\varphi(ab) != \varphi(a)\varphi(b)
\ln(f(x)) != f(\ln x)
\left[\begin{array}{cc}1&0\\0&1\end{array}\right] != \left[\begin{array}{cc}0&1\\1&0\end{array}\right]
(x,y)=(2,1) != (x,y)=(1,2)
(x,y)=(2,1) != (1,2)
a=1,b=2,c=3 != a=1,b=3,c=2
\text{June 20} != \text{June 2}
\text{June 20, 2020} != \text{June 20, 2021}
\triangle ABC != \triangle DEF
ABC != CAB
\angle A != \angle B
\$5 != \text{€}5
5\text{ hours }20\text{ minutes} != 5\text{ hours }2\text{ minutes}
5\text{ hours }20\text{ minutes} != 5.2\text{ hours}
5\text{ lb }4\text{ oz} != 5.4\text{ lb}
6\text{ ft} != 6\text{ ft}^2
6\text{ km}^2 != 6\text{ km}
3\text{ kg} != 3\text{ g}
3\text{ g} != 3\text{ kg}
1\text{ m} != 1\text{ mm}
5 km != 5 mm
5 km/h != 5 km/s
40^\circ != 40^\circ\text{F}
x = 3 \ne 4 != 4
5 = 4 != 5
5 = 4 != 4
3 \approx 4 != 4
3 \approx 4 != 3
x = 3.14 \approx 3 != 4
y = x^2 = 4 != x^2
f'(x) = 2x != f(x) = 2x
f''(x) = 2 != f'(x)=2
(2,5] != 2\le x<5
2 < x != x < 2
(-\infty,2)\cup(5,\infty) != 2<x<5
x\ge 2 != x>2
x \le 3 \text{ and } x \ge 1 != [1,3)
x<1\text{ or }x<2 != (-\infty,1)
\mathbb{R} != (0,\infty)
x \not= 5 != 5
x \not= 5 != x = 5
x \neq \pm 2 != \pm 2
x\ne 2, x \ne -2 != x\neq 2
{3 \over 4} != {4 \over 3}
{a+b \over c} != a+{b \over c}
\{1,234, 5,678\} != \{1,2\}
\{1,234\} != \{1,2,3,4\}
1,2,34 != 1,234
1,23,456 != 123456
\text{3 apples} != \text{3 oranges}
\text{3 apples} != \text{2 apples}
n\mathrm{C}2 != n\mathrm{P}2
2\mathbf{i}+3\mathbf{j} != 3\mathbf{i}+2\mathbf{j}
2\mathbf{i} != -2\mathbf{i}
\mathbf{i}^2 != -1
2\hat{i} != 2
\mathrm{Re}(z) != \mathrm{Im}(z)
\mathrm{Re}(z) != z
\text{Re}(z) != z\text{Re}
x^\text{T} != x
A^{\mathrm{T}} != A
A^{\top} != A
A^{*} != A
A^{\dagger} != A
A^c != A
2 \text{ remainder } 3 != 2
2 \text{ R } 3 != 2 \text{ R } 4
2\text{ R }3 != 3\text{ R }2
5 \text{ mod } 7 != 5
3 \pmod 5 != 3
x \equiv 3 != 3
\text{at least }5 != 5
\text{at least }5 != \text{at most }5
5\text{ or more} != 5
5\text{ or fewer} != 5\text{ or more}
\text{more than }5 != \text{less than }5
\text{none} != 0
\text{None} != \emptyset
2\text{nd} != 3\text{rd}
1\text{st} != 2\text{nd}
7:30 != 7:03
7:30\text{ AM} != 7:30\text{ PM}
12:00 != 12
\frac{1}{2}\text{ cup} != 2\text{ cups}
1/0 != \infty
\infty+1 != \infty
50\% != 50
50\% != 5\%
\text{yes, no} != \text{yes}
1 < 2 != 3 < 5
2=3 != 5=7
1=1 != 2=2
x=1,2 != x=1
x=1\text{ or }2 != x=1
x = 1 \text{ only} != x=1,2
(1,2,3) != \{1,2,3\}
[1,2,3] != (1,2,3)
(2,3)\cup(4,5) != (2,5)
\pm 3 != 3
\mp 3 != 3
1\pm2 != 3
f(x) \ge 3 != f(x) > 3
f(x) = 3 != g(x)=3
\max f = 3 != \min f = 3
\text{max}=3 != \text{min} = 3
5\mathrm{V} != 5\mathrm{W}
5\mathrm{mW} != 5\mathrm{MW}
5\text{ mm} != 5\text{ Mm}
n! != n
n!! != n!
\lfloor x != x
x' != x
\dot{x} != x
\tilde{x} != x
x^* != x
\mathcal{A} != A
\mathfrak{g} != g
|\vec{v}| != v
\|v\| != v
\vec{v}\cdot\vec{w} != \vec{v}\times\vec{w}
a\times b != b\div a
\nabla f != f
\partial f != f
\Re z != z
\sqrt{x^2} != x
\sqrt{(\ln x)^2} != \ln x
\sqrt{x_{n+1}^2} != x_{n+1}
\cot^{-1} x != \tan x
\sin^{-1}(x) != \csc(x)
\left.5\right. != 0.5
x\mathrm{e} != x
\mathrm{e}^x != 1^x
2\pi\mathrm{i} != 2\pi
\mathrm{i}x != x
3\mathrm{d}x != 3x
x\in\mathbb{C} != x\in\mathbb{R}
\mathbb{Q} != \mathbb{Q}^c
f:\mathbb{R}\to\mathbb{R} != f:\mathbb{Z}\to\mathbb{Z}
9\text{ AM to }5\text{ PM} != 9\text{ AM to }5\text{ AM}
9\text{ AM} != 21
6\text{ dozen} != 6
6\text{ dozen} != 60
6\text{ score} != 6
7\text{ hundred} != 7\text{ thousand}
7\text{ tenths} != 7
7\text{ tenths} != 7\text{ hundredths}
3\text{ percent} != 3
3\text{ halves} != 3
\text{half} != 2
\text{twice} != 2
2\text{ pairs} != 2\text{ groups}
\text{A}\text{B} != \text{A}
\text{A},\text{B},\text{C} != \text{A},\text{B}
\text{B},\text{C} != \text{C},\text{D}
\text{(A) and (B)} != \text{(A)}
\text{neither A nor B} != \text{A or B}
\text{both} != \text{neither}
\text{some} != \text{none}
\text{all} != \text{none}
\text{positive} != \text{nonpositive}
\text{right triangle} != \text{triangle}
\text{isosceles} != \text{scalene}
\text{not possible} != \text{possible}
impossible != possible
\text{Tom is taller} != \text{Jim is taller}
\text{x is larger than y} != \text{y is larger than x}
\text{listen} != \text{silent}
was != saw
nip != pin
May != yaM
Ann != Nan
\bar{a}b != a\bar{b}
\overline{a}+b != \overline{a+b}
\overline{a}\,\overline{a} != a^2
\bar{2} != 2
0.1\overline{2} != 0.\overline{12}
5.\overline{5} != 5.5
0.\overline{142857} != 0.142857
\overline{0.5} != 0.5
f(x-1) != f(x)-1
f(x^2) != f(x)^2
f(3x) != f(x)^3
f(\frac{1}{x}) != \frac{1}{f(x)}
\frac{f(x)}{x} != f
f(x)/f(y) != f(x/y)
g'(2) != g(2)
f_1(x) != f_2(x)
f_1(x) != f(x)
h^{-1}(3) != \frac{1}{h(3)}
(f\circ g)(x) != (g\circ f)(x)
(fg)(x) != f(g(x))
f(1)=2 != f(2)=1
f(0)=0 != 0=1
\phi(n) != \phi n
\tau(12) != 12\tau
u(x,y) != u(y,x)
W(t) != Wt
\left[\begin{array}{cc}1&2\end{array}\right] != \left[\begin{array}{c}1\\2\end{array}\right]
\left|\begin{array}{cc}1&2\\3&4\end{array}\right| != \left[\begin{array}{cc}1&2\\3&4\end{array}\right]
S=\{1,2,3\} != S=\{1,2\}
S=\{1,2\} != S=(1,2)
S=\{1,2\} != S=[1,2]
A\cap B=\{1\} != A\cup B=\{1\}
(x,y)=(1,2) != (x,y)\ne(1,2)
(x,y)=(1,2) != x=2,y=1
(a,b)=(3,4) != a=4,b=3
x=3,y=4 != 4,3
1:2 != 2:1
1:2 != 1:3
3:2:1 != 1:2:3
3\text{ to }2 != 2\text{ to }3
\$3 != £3
3\text{¢} != \$3
\$1.05 != \$1.50
\text{June 20} != \text{June 200}
\text{20 June} != \text{21 June}
6/20 != 6/21
\triangle PQR != \triangle PRQ
\angle PQR != \angle PRQ
\overrightarrow{AB} != \overrightarrow{BA}
2\text{ h }5\text{ min} != 2\text{ h }50\text{ min}
2\text{ h }5\text{ min} != 2.5\text{ h}
1\text{ m }20\text{ cm} != 1.02\text{ m}
5\text{ yd }2\text{ ft} != 5\text{ ft }2\text{ yd}
x=1+1=3 != 3
x=3=1+1 != 2
a=b=2=3 != 3
2\approx3 != 2
\pi\approx3.2 != 3.2
\pi=3.14 != \pi
x^2=9=3 != 3
|x|=3 != 3
x^3=8 != 2
2^x=8 != 3
\ln x=2 != 2
x/2=3 != 3
x-1=2 != 2
f'(x)=2x != f'(x)=x
f'(1)=2 != f(1)=2
\frac{dy}{dx}=2 != \frac{dx}{dy}=2
(1,3) != 1\le x\le3
[1,3) != 1<x\le3
(-\infty,4) != x>4
(-\infty,4] != x<4
x<1\text{ or }x>3 != x<1\text{ and }x>3
x<1\text{ or }x>3 != 1<x<3
x\le1\text{ or }x\ge3 != x<1\text{ or }x>3
x\ne0,1 != x\ne0
x\neq 3 != (-\infty,3)
\mathbb{R} != [0,\infty)
(0,\infty) != [0,\infty)
{2\over3} != {3\over2}
{1\over x+1} != {1\over x}+1
1{\over}2 != 12
\{1,234\} != \{1,2,34\}
\{12,345\} != \{1,2345\}
(1,000,1) != (1,0,1)
1,000 != 1
1,000,5 != 1000.5
2,500 != 2.5
5\text{ apples} != 5\text{ pears}
m\text{ m} != \text{mm}
5\text{ mi} != 5\text{ min}
5\text{ h} != 5\text{ ha}
5\text{ lb} != 5\text{ L}
5\text{ s}^{-1} != 5\text{ s}
5\text{ rad/s} != 5\text{ rad}
5\text{ km}/\text{L} != 5\text{ km}
5\text{ per hour} != 5\text{ hours}
\frac{5\text{ km}}{2\text{ h}} != \frac{5}{2}\text{ mph}
`;
